"""Functions no statement may call, dialect by dialect: data for the guard, with what each would do.

Names are lower case. A name that ends with ``*`` stands for every name that begins so. To add a dialect,
add its set here, its quoting to ``schema.py`` and its driver to ``database/``.
"""

from collections.abc import Mapping
from functools import lru_cache

ANYWHERE: frozenset[str] = frozenset(
    {
        # code, files and the network, whichever database calls them so
        "load_extension", "load_file", "readfile", "writefile", "edit", "eval", "system", "shell", "exec",
        "read_csv", "read_parquet", "getenv", "xp_cmdshell", "dblink*",
    }
)  # fmt: skip
"""Refused in every dialect, so that a mistaken dialect does not open a door."""

DENIED: Mapping[str, frozenset[str]] = {
    "sqlite": frozenset(
        {
            "fts3_tokenizer",  # takes a pointer: arbitrary code
            "sqlite_log", "sqlite_compileoption_get", "sqlite_compileoption_used", "sqlite_source_id",
            "randomblob", "zeroblob",  # cells as large as asked for
            "optimize", "rtreecheck", "fts5_source_id", "matchinfo",
            "last_insert_rowid", "changes", "total_changes",
            "lsmode", "fsdir", "zipfile", "sqlar_compress", "sqlar_uncompress", "regexp",
        }
    ),
    "postgres": frozenset(
        {
            "pg_read_*", "pg_write_*", "pg_ls_*", "pg_stat_file", "pg_file_*", "pg_logdir_ls", "lo_*",
            "pg_sleep*", "pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_rotate_logfile*",
            "set_config", "current_setting", "pg_advisory_*", "pg_try_advisory_*", "pg_notify", "nextval", "setval",
            "pg_promote", "pg_switch_wal", "pg_create_*", "pg_drop_*", "pg_replication_*", "pg_logical_*",
            "pg_start_backup", "pg_stop_backup", "pg_backup_*", "pg_export_snapshot", "pg_log_*", "pg_wal_*",
            "query_to_xml*", "table_to_xml*", "schema_to_xml*", "database_to_xml*", "cursor_to_xml*",
            "pg_execute_server_program", "txid_current", "pg_current_xact_id", "inet_server_*", "generate_series",
        }
    ),
    "mysql": frozenset(
        {
            "sleep", "benchmark", "get_lock", "release_lock", "release_all_locks", "is_free_lock", "is_used_lock",
            "sys_exec", "sys_eval", "sys_get", "sys_set", "master_pos_wait", "source_pos_wait", "wait_for_executed_gtid_set",
            "last_insert_id", "extractvalue", "updatexml", "lib_mysqludf_*",
        }
    ),
    "duckdb": frozenset(
        {
            "read_*", "parquet_*", "sniff_csv", "glob", "which_secret", "duckdb_secrets", "query", "query_table",
            "sqlite_*", "postgres_*", "mysql_*", "iceberg_*", "delta_scan", "nextval", "currval", "current_setting",
            "generate_series", "range", "repeat_row", "seq_scan", "write_log", "http_*",
        }
    ),
}  # fmt: skip
"""Refused in one dialect."""

TABLE_FUNCTIONS: Mapping[str, frozenset[str]] = {
    "sqlite": frozenset({"json_each", "json_tree"}),
    "postgres": frozenset(
        {"unnest", "json_array_elements", "jsonb_array_elements", "json_each", "jsonb_each"}
    ),
    "mysql": frozenset({"json_table"}),
    "duckdb": frozenset({"unnest", "json_each", "json_tree"}),
}
"""The only functions that may stand where a table stands."""


@lru_cache(maxsize=4096)
def denied(name: str, dialect: str) -> bool:
    """Say whether a function's name is on the list of its dialect or on everybody's."""
    folded = name.casefold()
    return any(
        folded.startswith(entry[:-1]) if entry.endswith("*") else folded == entry
        for entry in ANYWHERE | DENIED.get(dialect, frozenset())
    )
