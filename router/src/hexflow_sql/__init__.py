"""Questions to SQL to rows: databases, the guard, prompts, extraction, comparison and the four stages.

It must not know who runs the language models (``LanguageModel`` is the seam), what a resource is, or
that anybody serves it over HTTP.
"""

from hexflow_sql.completion import (
    Completion,
    CompletionError,
    CompletionRequest,
    LanguageModel,
    PromptBlock,
    messages,
)
from hexflow_sql.database import Database, open_database
from hexflow_sql.draft import Candidate, Draft, Skipped, settle
from hexflow_sql.errors import (
    AllCandidatesFailed,
    DatabaseUnavailable,
    NoAnswer,
    NoStatement,
    SqlError,
    StageTimedOut,
    StatementError,
    StatementFailed,
    StatementRefused,
    Unanswerable,
)
from hexflow_sql.guard import SafeStatement, check
from hexflow_sql.limits import Layers, Limits
from hexflow_sql.question import Question
from hexflow_sql.result import Cell, Result, json_cell, json_rows
from hexflow_sql.schema import Column, ForeignKey, Schema, Table, render
from hexflow_sql.stage import Stage, StageSettings, build_stage
from hexflow_sql.stage.events import (
    CandidateChosen,
    CandidateExtracted,
    Event,
    Observer,
    PartSkipped,
    ResultsCompared,
    StatementTried,
    TablesLinked,
    UnitTestJudged,
    nobody,
)

__all__ = [
    "AllCandidatesFailed",
    "Candidate",
    "CandidateChosen",
    "CandidateExtracted",
    "Cell",
    "Column",
    "Completion",
    "CompletionError",
    "CompletionRequest",
    "Database",
    "DatabaseUnavailable",
    "Draft",
    "Event",
    "ForeignKey",
    "LanguageModel",
    "Layers",
    "Limits",
    "NoAnswer",
    "NoStatement",
    "Observer",
    "PartSkipped",
    "PromptBlock",
    "Question",
    "Result",
    "ResultsCompared",
    "SafeStatement",
    "Schema",
    "Skipped",
    "SqlError",
    "Stage",
    "StageSettings",
    "StageTimedOut",
    "StatementError",
    "StatementFailed",
    "StatementRefused",
    "StatementTried",
    "Table",
    "TablesLinked",
    "Unanswerable",
    "UnitTestJudged",
    "build_stage",
    "check",
    "json_cell",
    "json_rows",
    "messages",
    "nobody",
    "open_database",
    "render",
    "settle",
]
