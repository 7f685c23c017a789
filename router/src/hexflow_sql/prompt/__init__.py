"""Prompts: one versioned template for each task, and what a model's text must look like.

The first line of the system message names the task; the user's message has the schema first and ends with
the line ``Question: …``. What each task must answer:

``Task: schema-linking``
    JSON alone (or in a fence): ``{"tables": [{"table": "orders", "columns": ["id", "total"]}, …]}``.
    Keys besides ``tables`` are ignored (``"reasoning"`` is welcome). Names are the schema's; an empty list
    of columns keeps all. A list of names (``{"tables": ["orders"]}``) is understood.
``Task: candidate``
    Free text, then the statement in the last fenced block (```` ```sql … ``` ````); JSON
    ``{"sql": "…"}`` and ``<answer>…</answer>`` are understood, too. Where no statement over this schema can
    answer: ``<unanswerable>why</unanswerable>`` (or JSON ``{"unanswerable": "why"}``).
``Task: correction``
    As for ``candidate``. The prompt holds the failed statement in a fence after the line
    ``Statement:`` and the database's own message in the line ``Error: no such column: custmer``
    (an empty result has the line ``Error: the statement runs and gives no rows``, with the texts that do
    not occur).
``Task: unit-tests``
    JSON ``{"tests": ["…", "…"]}``: sentences, each of which a right statement fulfils and one of the
    candidates may not. The prompt lists the candidates as ``Candidate 1:`` and so on, one for each different
    result, numbered by their place among all candidates (so numbers may be missing).
``Task: choice``
    One test a prompt, in the line ``Test: …``. JSON ``{"passes": [1, 3]}``: the numbers of the candidates
    that fulfil it; keys besides are ignored. The candidates are listed as for ``unit-tests``.

Seeds: candidate ``i`` (from 0) has seed ``i`` in its first request; a correction of candidate ``i`` in
round ``r`` (from 1) has seed ``100 * r + i``; the choice for test ``j`` has seed ``j``; all others 0.
"""

from hexflow_sql.prompt.template import TASKS, VERSION, candidate, choice, correction, linking, unit_tests

__all__ = ["TASKS", "VERSION", "candidate", "choice", "correction", "linking", "unit_tests"]
