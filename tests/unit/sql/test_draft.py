"""Outcomes of a draft."""

import pytest

from hexflow_sql import AllCandidatesFailed, NoStatement, Unanswerable, settle
from support.sql import a_candidate, a_draft, a_result


def test_the_chosen_candidate_answers() -> None:
    entries = (a_candidate(0, result=a_result((1,))), a_candidate(1, result=a_result((2,))))
    assert settle(a_draft(candidates=entries, chosen=1)).index == 1


def test_without_a_choice_the_first_with_rows_answers() -> None:
    entries = (a_candidate(0, error="no"), a_candidate(1, result=a_result((2,))))
    assert settle(a_draft(candidates=entries)).index == 1


def test_without_a_choice_votes_count() -> None:
    entries = (a_candidate(0, result=a_result((1,)), votes=1), a_candidate(1, result=a_result((2,)), votes=3))
    assert settle(a_draft(candidates=entries)).index == 1


def test_no_candidate_at_all_is_no_statement() -> None:
    with pytest.raises(NoStatement):
        settle(a_draft())


def test_statements_that_nobody_ran_are_no_answer_either() -> None:
    with pytest.raises(AllCandidatesFailed, match="no stage has run"):
        settle(a_draft(candidates=(a_candidate(0),)))


def test_refusals_are_quoted() -> None:
    with pytest.raises(Unanswerable, match="no weather"):
        settle(a_draft(candidates=(a_candidate(0, None, refusal="no weather"),)))


def test_a_long_text_is_quoted_in_part() -> None:
    with pytest.raises(NoStatement) as caught:
        settle(a_draft(candidates=(a_candidate(0, None, text="word " * 1000),)))
    assert len(caught.value.message) < 400
