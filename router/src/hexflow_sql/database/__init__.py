"""Databases that statements run on, one module for each dialect behind one small protocol.

A driver owns the engine layer and the resource layer of safety; the parser layer is ``guard.py``.
"""

from hexflow_sql.database.opening import open_database
from hexflow_sql.database.protocol import Database

__all__ = ["Database", "open_database"]
