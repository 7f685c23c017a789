-- The sample shop: an outdoor outfitter with six stores, a web shop and a telephone.
-- Money is in euro cents, prices include VAT. Instants are UTC, as text; days are the store's own.
-- The awkward names and the NULLs are on purpose: real shops have them.

CREATE TABLE countries (
    code        TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    vat_percent INTEGER NOT NULL
);

CREATE TABLE stores (
    store_id     INTEGER PRIMARY KEY,
    name         TEXT NOT NULL,
    city         TEXT NOT NULL,
    country_code TEXT NOT NULL REFERENCES countries (code),
    time_zone    TEXT NOT NULL,             -- IANA name
    opened_on    TEXT NOT NULL,
    closed_on    TEXT                       -- NULL: still open
);

CREATE TABLE employees (
    employee_id INTEGER PRIMARY KEY,
    store_id    INTEGER REFERENCES stores (store_id),       -- NULL: head office
    name        TEXT NOT NULL,
    role        TEXT NOT NULL,
    manager_id  INTEGER REFERENCES employees (employee_id), -- NULL: reports to nobody
    hired_on    TEXT NOT NULL,
    left_on     TEXT                                        -- NULL: still here
);

CREATE TABLE customers (
    customer_id    INTEGER PRIMARY KEY,
    first_name     TEXT NOT NULL,
    last_name      TEXT NOT NULL,
    email          TEXT,                    -- typed by people: case differs, some have none
    city           TEXT NOT NULL,
    country_code   TEXT NOT NULL REFERENCES countries (code),
    birth_date     TEXT,
    joined_on      TEXT NOT NULL,
    newsletter     INTEGER,                 -- 1 yes, 0 no, NULL never asked
    "loyalty tier" TEXT                     -- bronze, silver, gold; NULL: no card
);

CREATE TABLE categories (
    category_id INTEGER PRIMARY KEY,
    parent_id   INTEGER REFERENCES categories (category_id), -- NULL: top of the tree
    name        TEXT NOT NULL
);

CREATE TABLE suppliers (
    supplier_id      INTEGER PRIMARY KEY,
    name             TEXT NOT NULL,
    country_code     TEXT NOT NULL REFERENCES countries (code),
    "lead time days" INTEGER
);

CREATE TABLE products (
    product_id      INTEGER PRIMARY KEY,
    sku             TEXT NOT NULL UNIQUE,
    name            TEXT NOT NULL,
    category_id     INTEGER NOT NULL REFERENCES categories (category_id),
    price_cents     INTEGER NOT NULL,
    weight_grams    INTEGER,                -- NULL: never weighed
    discontinued_on TEXT                    -- NULL: still sold
);

-- Which supplier delivers which product, and at what cost; one of them is preferred.
CREATE TABLE product_suppliers (
    product_id  INTEGER NOT NULL REFERENCES products (product_id),
    supplier_id INTEGER NOT NULL REFERENCES suppliers (supplier_id),
    cost_cents  INTEGER NOT NULL,
    preferred   INTEGER NOT NULL,
    PRIMARY KEY (product_id, supplier_id)
);

CREATE TABLE tags (
    tag_id INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
);

CREATE TABLE product_tags (
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    tag_id     INTEGER NOT NULL REFERENCES tags (tag_id),
    PRIMARY KEY (product_id, tag_id)
);

CREATE TABLE coupons (
    code          TEXT PRIMARY KEY,
    "percent off" INTEGER NOT NULL,
    "from"        TEXT NOT NULL,            -- first day it is valid
    "to"          TEXT                      -- last day it is valid; NULL: for ever
);

CREATE TABLE "order" (
    order_id           INTEGER PRIMARY KEY,
    customer_id        INTEGER REFERENCES customers (customer_id), -- NULL: a guest
    store_id           INTEGER NOT NULL REFERENCES stores (store_id),
    channel            TEXT NOT NULL,       -- store, web, phone
    placed_at          TEXT NOT NULL,       -- UTC
    utc_offset_minutes INTEGER NOT NULL,    -- of the store's clock at that instant
    status             TEXT NOT NULL,       -- open, shipped, delivered, cancelled
    coupon_code        TEXT REFERENCES coupons (code)
);

CREATE TABLE "order items" (
    order_id         INTEGER NOT NULL REFERENCES "order" (order_id),
    line             INTEGER NOT NULL,
    product_id       INTEGER NOT NULL REFERENCES products (product_id),
    quantity         INTEGER NOT NULL,
    unit_price_cents INTEGER NOT NULL,      -- on the day of the order, before the discount
    discount_percent INTEGER NOT NULL,
    PRIMARY KEY (order_id, line)
);

-- An order may be paid in parts, and a payment may fail and be tried again.
CREATE TABLE payments (
    payment_id   INTEGER PRIMARY KEY,
    order_id     INTEGER NOT NULL REFERENCES "order" (order_id),
    method       TEXT NOT NULL,             -- card, paypal, cash, gift card, invoice
    amount_cents INTEGER NOT NULL,
    state        TEXT NOT NULL,             -- captured, failed, pending
    paid_at      TEXT                       -- UTC; NULL unless captured
);

CREATE TABLE shipments (
    shipment_id  INTEGER PRIMARY KEY,
    order_id     INTEGER NOT NULL REFERENCES "order" (order_id),
    carrier      TEXT NOT NULL,
    shipped_at   TEXT NOT NULL,             -- UTC
    delivered_at TEXT                       -- UTC; NULL: on its way or lost
);

CREATE TABLE returns (
    return_id    INTEGER PRIMARY KEY,
    order_id     INTEGER NOT NULL,
    line         INTEGER NOT NULL,
    quantity     INTEGER NOT NULL,
    reason       TEXT,                      -- NULL: not given
    returned_on  TEXT NOT NULL,
    refund_cents INTEGER NOT NULL,
    FOREIGN KEY (order_id, line) REFERENCES "order items" (order_id, line)
);

CREATE TABLE stock (
    store_id        INTEGER NOT NULL REFERENCES stores (store_id),
    product_id      INTEGER NOT NULL REFERENCES products (product_id),
    "on hand"       INTEGER NOT NULL,
    "reorder level" INTEGER NOT NULL,
    PRIMARY KEY (store_id, product_id)
);

CREATE TABLE reviews (
    review_id   INTEGER PRIMARY KEY,
    product_id  INTEGER NOT NULL REFERENCES products (product_id),
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    rating      INTEGER NOT NULL,           -- 1 to 5
    title       TEXT,
    body        TEXT,
    written_on  TEXT NOT NULL
);
