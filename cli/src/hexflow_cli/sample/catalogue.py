"""What somebody once wrote down about the sample shop: places, people's names, goods and opinions.

The dice of :mod:`hexflow_cli.sample.shop` make customers and orders of it. Nothing here is real; all of it
is CC0.
"""

COUNTRIES = (
    ("AT", "Austria", 20),
    ("DE", "Germany", 19),
    ("FR", "France", 20),
    ("IE", "Ireland", 23),
    ("JP", "Japan", 10),
    ("NL", "Netherlands", 21),
    ("PT", "Portugal", 23),
)

CITIES = {
    "DE": ("Berlin", "Hamburg", "München", "Köln", "Potsdam"),
    "FR": ("Lyon", "Grenoble", "Villeurbanne"),
    "PT": ("Lisboa", "Porto"),
    "IE": ("Dublin", "Cork"),
    "JP": ("東京", "Yokohama"),
    "AT": ("Wien", "Innsbruck"),
    "NL": ("Utrecht", "'s-Hertogenbosch"),
}
"""Cities of a country, those with most customers first."""

STORES = (
    (1, "Berlin Kastanienallee", "Berlin", "DE", "Europe/Berlin", "2014-04-12", None),
    (2, "Hamburg Speicher", "Hamburg", "DE", "Europe/Berlin", "2016-09-01", None),
    (3, "Lyon Presqu'île", "Lyon", "FR", "Europe/Paris", "2018-03-17", None),
    (4, "Lisbon Chiado", "Lisboa", "PT", "Europe/Lisbon", "2019-05-04", "2025-11-30"),
    (5, "Dublin Temple Bar", "Dublin", "IE", "Europe/Dublin", "2021-06-19", None),
    (6, "Tokyo Shimokitazawa", "東京", "JP", "Asia/Tokyo", "2022-10-08", None),
)

WINTER_OFFSET_MINUTES = {1: 60, 2: 60, 3: 60, 4: 0, 5: 0, 6: 540}
"""A store's clock against UTC in winter; all but Tokyo put it forward in summer."""

FIRST_NAMES = (
    "Ada", "Amina", "Anouk", "Bela", "Björn", "Caoimhe", "Chiara", "Claire", "Daan", "Elif", "Emil", "Fatou",
    "Fionn", "Greta", "Hana", "Henrik", "Inês", "Jakob", "João", "Jule", "Kenji", "Lars", "Léa", "Lotte",
    "Luca", "Maeve", "Malik", "Marie", "Matteo", "Mila", "Nadia", "Niamh", "Noé", "Olga", "Paula", "Quentin",
    "Rosa", "Sakura", "Samir", "Siobhán", "Sofia", "Tariq", "Théo", "Ulrike", "Vera", "Yuki", "Zoë",
)  # fmt: skip

LAST_NAMES = (
    "Almeida", "Bauer", "Bernard", "Byrne", "Çelik", "Costa", "D'Angelo", "Dubois", "Fischer", "Garnier",
    "Gräf", "Haas", "Ito", "Jansen", "Kelly", "Klein", "Kowalski", "Lefèvre", "Lindner", "Marques", "Meyer",
    "Moreau", "Murphy", "Nakamura", "Null", "O'Brien", "O'Neill", "Pereira", "Petit", "Richter", "Rossi",
    "Ruiz", "Santos", "Sato", "Schäfer", "Schulz", "Silva", "Tanaka", "van den Berg", "Vogel", "Wagner",
    "Walsh", "Weiß", "Yamamoto", "Zimmer",
)  # fmt: skip

CATEGORIES = (
    (1, None, "Clothing"),
    (2, 1, "Jackets"),
    (3, 1, "Trousers"),
    (4, 1, "Socks & Underwear"),
    (5, 2, "Rain Jackets"),
    (6, 2, "Down Jackets"),
    (7, None, "Camping"),
    (8, 7, "Tents"),
    (9, 7, "Sleeping Bags"),
    (10, 7, "Cooking"),
    (11, None, "Climbing"),
    (12, 11, "Ropes"),
    (13, 11, "Chalk"),
    (14, None, "Books & Maps"),
    (15, None, "Gift Cards"),
)

SUPPLIERS = (
    (1, "Alpenwolle GmbH", "AT", 14),
    (2, "Atlantic Textiles, Lda.", "PT", 21),
    (3, "Baltic Down Co.", "DE", 30),
    (4, "Hokkaido Works", "JP", 45),
    (5, "Kettle & Sons", "IE", 10),
    (6, "Polder Rope", "NL", 12),
    (7, "Savoie Montagne", "FR", 18),
    (8, "Verlag Wegweiser", "DE", None),
)

TAGS = (
    (1, "waterproof"),
    (2, "recycled"),
    (3, "vegan"),
    (4, "lightweight"),
    (5, "winter"),
    (6, "gift idea"),
    (7, "made in Europe"),
)

PRODUCTS = (
    # sku, name, category, price in cents, weight in grams, discontinued, (supplier, cost)…, tags
    ("JK-101", "Rain Jacket Skerry", 5, 14990, 380, None, ((2, 6900), (7, 7400)), (1, 2, 4)),
    ("JK-102", "Rain Jacket Skerry Women's", 5, 14990, 350, None, ((2, 6900),), (1, 2, 4)),
    ("JK-103", "Storm Shell", 5, 24950, 460, None, ((7, 11800), (4, 12900)), (1, 5)),
    ("JK-104", "City Poncho", 5, 4990, None, "2025-08-31", ((2, 1900),), (1,)),
    ("JK-201", "Down Jacket Polaris", 6, 29900, 420, None, ((3, 15200),), (4, 5)),
    ("JK-202", "Down Jacket Polaris Kids", 6, 15900, 290, None, ((3, 8100),), (5,)),
    ("JK-203", "Down Vest", 6, 11950, 240, None, ((3, 5400), (4, 6300)), (2, 4)),
    ("JK-301", "Fleece Jacket Lamb", 2, 8990, 410, None, ((2, 3300), (1, 3900)), (2, 5)),
    ("TR-101", "Trekking Trousers Karst", 3, 9990, 390, None, ((2, 4100),), (2,)),
    ("TR-102", "Zip-off Trousers", 3, 8490, 420, "2026-03-31", ((2, 3600),), ()),
    ("TR-103", "Rain Trousers", 3, 7990, 260, None, ((2, 3000), (7, 3250)), (1, 4)),
    ("TR-104", "Climber's Trousers \"Chalkline\"", 3, 10950, 400, None, ((7, 4900),), (3,)),
    ("SO-101", "100% Merino Socks", 4, 2490, 70, None, ((1, 900),), (5, 7)),
    ("SO-102", "Hiking Socks 2-pack", 4, 1990, 110, None, ((1, 800), (2, 640)), (2,)),
    ("SO-103", "Long Johns, 100% Wool", 4, 6990, 210, None, ((1, 2900),), (5, 7)),
    ("SO-104", "Sock Liners", 4, 990, None, None, ((2, 280),), (3, 4)),
    ("TE-101", "Tent Fjell 2", 8, 39900, 1900, None, ((4, 21000),), (1, 4)),
    ("TE-102", "Tent Fjell 3", 8, 49900, 2400, None, ((4, 26500),), (1,)),
    ("TE-103", "Tarp 3 x 3 m", 8, 8990, 540, None, ((2, 3500), (6, 3900)), (1, 2, 4)),
    ("TE-104", "Festival Tent", 8, 5990, 2700, "2025-10-15", ((2, 2600),), ()),
    ("TE-105", "Expedition Tent Hadal", 8, 89900, 3900, None, ((4, 52000),), (1, 5)),
    ("SB-101", "Sleeping Bag Marmot 0 °C", 9, 17950, 980, None, ((3, 8000),), (5,)),
    ("SB-102", "Sleeping Bag Dormouse +8 °C", 9, 9950, 720, None, ((3, 4200), (2, 3990)), (2, 4)),
    ("SB-103", "Sleeping Bag Liner, Silk", 9, 5990, 130, None, ((4, 2300),), (4,)),
    ("SB-104", "Sleeping Mat Moss", 9, 7990, 480, None, ((4, 3600), (2, 3300)), (2, 4)),
    ("CK-101", "Kettle \"Old Tom\"", 10, 3990, 310, None, ((5, 1500),), (6, 7)),
    ("CK-102", "Gas Stove Ember", 10, 5490, 95, None, ((4, 2400),), (4,)),
    ("CK-103", "Titanium Mug", 10, 2950, 60, None, ((4, 1200), (5, 1150)), (4, 6)),
    ("CK-104", "Spork", 10, 490, 10, None, ((5, 90),), (3, 4, 6)),
    ("CK-105", "Coffee Press, 50% Recycled Steel", 10, 4490, 420, None, ((5, 1900),), (2, 6)),
    ("RP-101", "Rope 9.8 mm, 60 m", 12, 18990, 3900, None, ((6, 8900),), (7,)),
    ("RP-102", "Rope 9.2 mm, 70 m dry", 12, 25990, 4000, None, ((6, 12500), (7, 13100)), (1, 7)),
    ("RP-103", "Accessory Cord 6 mm", 12, 1490, 240, None, ((6, 450),), (7,)),
    ("CH-101", "Chalk Ball", 13, 590, 60, None, ((7, 150),), (3,)),
    ("CH-102", "Chalk Bag \"Dusty's\"", 13, 2490, 120, None, ((7, 900), (2, 780)), (2, 6)),
    ("CH-103", "Liquid Chalk 250 ml", 13, 1290, 270, None, ((7, 380),), (3,)),
    ("CH-104", "Crash Pad", 11, 21990, 5600, None, ((6, 11000),), ()),
    ("CH-105", "Climbing Helmet", 11, 7490, 310, None, ((7, 3100),), ()),
    ("BK-101", "Map of the Alps 1:50,000", 14, 1590, 90, None, ((8, 700),), (6,)),
    ("BK-102", "The Knot Book", 14, 1990, 350, None, ((8, 950),), (6,)),
    ("BK-103", "A Hiker's Guide to Ireland's West", 14, 2290, 410, None, ((8, 1100), (5, 1180)), (6,)),
    ("BK-104", "Star Chart", 14, 1250, None, None, ((8, 400),), (6,)),
    ("BK-105", "Atlas of Closed Huts", 14, 3490, 900, None, ((8, 1800),), ()),
    ("GC-025", "Gift Card 25 €", 15, 2500, None, None, (), (6,)),
    ("GC-100", "Gift Card 100 €", 15, 10000, None, None, (), (6,)),
)  # fmt: skip

NEVER_SOLD = ("TE-105", "BK-105", "CH-104")
"""Products that nobody has bought yet."""

COUPONS = (
    ("WELCOME10", 10, "2025-01-01", None),
    ("SPRING20", 20, "2025-03-15", "2025-04-30"),
    ("BLACK50", 50, "2025-11-28", "2025-12-01"),
    ("SPRING20-26", 20, "2026-03-15", "2026-04-30"),
)

CARRIERS = ("DHL", "La Poste", "PostNL", "Yamato")

RETURN_REASONS = ("too small", "too large", "faulty", "didn't like it", "arrived late", None)

OPINIONS = {
    1: (("Broke at once", "The zip gave up on day two."), (None, "No.")),
    2: (("Meh", 'The shop called it "robust". It is not.'), ("Runs small", None)),
    3: (("It's all right", "Does what it says; nothing more."), (None, None)),
    4: (("Good", "I'd buy it again, in another colour."), ("Solid", "Two weeks of rain, one wet sock.")),
    5: (("Love it!", "Best I've had; my sister's jealous."), ('10/10, "would hike again"', None)),
}
"""Titles and bodies of reviews by rating."""

EMPLOYEES = (
    # number, store, name, role, manager, hired, left
    (1, None, "Ilse Brandt", "managing director", None, "2013-11-01", None),
    (2, None, "Paolo Ferri", "buyer", 1, "2015-02-16", None),
    (3, None, "Grace O'Malley", "web shop lead", 1, "2018-08-01", None),
    (4, 1, "Jens Kühn", "store manager", 1, "2014-03-01", None),
    (5, 1, "Miriam Adler", "sales", 4, "2017-05-15", None),
    (6, 1, "Tobias Renk", "sales", 4, "2024-11-04", "2025-03-31"),
    (7, 1, "Aylin Demir", "repair", 4, "2021-01-11", None),
    (8, 1, "Nora Seidel", "sales", 4, "2025-04-01", None),
    (9, 2, "Hauke Petersen", "store manager", 1, "2016-07-01", None),
    (10, 2, "Svea Holm", "sales", 9, "2016-09-01", "2023-06-30"),
    (11, 2, "Can Yildiz", "sales", 9, "2023-06-15", None),
    (12, 2, "Ben Opitz", "repair", 9, "2025-02-01", "2026-01-31"),
    (13, 3, "Camille Rey", "store manager", 1, "2018-02-01", None),
    (14, 3, "Hugo Blanc", "sales", 13, "2018-03-17", None),
    (15, 3, "Inès Faure", "sales", 13, "2022-04-04", "2023-04-03"),
    (16, 3, "Louis d'Arc", "climbing coach", 13, "2023-09-01", None),
    (17, 4, "Rita Nogueira", "store manager", 1, "2019-04-01", "2025-11-30"),
    (18, 4, "Tiago Reis", "sales", 17, "2019-05-04", "2025-11-30"),
    (19, 5, "Declan Roche", "store manager", 1, "2021-05-10", None),
    (20, 5, "Aoife Nolan", "sales", 19, "2021-06-19", None),
    (21, 5, "Peter Null", "sales", 19, "2024-03-01", "2024-09-15"),
    (22, 6, "Mariko Endo", "store manager", 1, "2022-09-01", None),
    (23, 6, "Shun Mori", "sales", 22, "2022-10-08", None),
    (24, 6, "Emi Hoshino", "sales", 22, "2024-05-20", None),
    (25, None, "Viktor Lang", "web shop", 3, "2020-10-01", None),
    (26, None, "Selma Kraus", "web shop", 3, "2025-09-01", None),
)
