"""From a name, a dialect and a DSN to a database; the DSN is a secret and never quoted."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hexflow_sql.database.protocol import Database
from hexflow_sql.database.sqlite import SqliteDatabase
from hexflow_sql.errors import DatabaseUnavailable
from hexflow_sql.limits import Layers

ALL_LAYERS = Layers()


def open_database(
    *,
    name: str,
    dialect: str,
    dsn: str,
    base_dir: Path,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    sample_values: int = 3,
    refresh_seconds: float = 300.0,
    layers: Layers = ALL_LAYERS,
) -> Database:
    """Prepare a database; nothing is opened before the first use.

    ``base_dir`` is where relative paths of the DSN start. ``include`` and ``exclude`` are names or patterns
    (``order*``) of tables. ``sample_values`` is how many values of each column prompts may show, 0 for none.
    ``refresh_seconds`` bounds the age of what is remembered of the values; changed tables are seen at once.
    Raises DatabaseUnavailable with reason UnknownDialect or BadDsn.
    """
    maker = _MAKERS.get(dialect)
    if maker is None:
        known = ", ".join(sorted(_MAKERS))
        raise DatabaseUnavailable(
            "UnknownDialect", f"Database {name!r}: no driver for {dialect!r}; use one of: {known}."
        )
    return maker(
        name=name,
        dsn=dsn,
        base_dir=base_dir,
        include=tuple(include),
        exclude=tuple(exclude),
        sample_values=sample_values,
        refresh_seconds=refresh_seconds,
        layers=layers,
    )


_MAKERS: Mapping[str, Callable[..., Database]] = {"sqlite": SqliteDatabase.from_dsn}
"""A driver for each dialect; adding one is one module and one line."""
