import pytest

from hexflow_scheduler import (
    InvalidTemplate,
    InvalidTransition,
    Progress,
    StageState,
    StageTemplate,
    WorkflowTemplate,
)

CHAIN = WorkflowTemplate(tuple(StageTemplate(name) for name in ("link", "draft", "fix", "judge")))
DIAMOND = WorkflowTemplate(
    (
        StageTemplate("link"),
        StageTemplate("short", after=("link",)),
        StageTemplate("long", after=("link",)),
        StageTemplate("judge", after=("short", "long")),
    )
)
COSTS = {"link": 2.0, "draft": 6.0, "fix": 3.0, "judge": 1.0}


def passing(progress: Progress, *names: str, now: float = 0.0) -> Progress:
    for name in names:
        progress.start(now, name)
        progress.finish(now, name)
    return progress


def test_a_stage_without_after_comes_after_the_one_before_it() -> None:
    progress = Progress(CHAIN, 0.0)
    assert progress.ready() == ("link",)
    progress.start(1.0, "link")
    assert progress.ready() == ()
    progress.finish(2.0, "link")
    assert progress.ready() == ("draft",)


def test_stages_that_wait_for_the_same_one_become_ready_together() -> None:
    progress = passing(Progress(DIAMOND, 0.0), "link")
    assert progress.ready() == ("short", "long")
    assert passing(progress, "short").ready() == ("long",)
    assert passing(progress, "long").ready() == ("judge",)


def test_a_skipped_stage_lets_the_next_start() -> None:
    progress = passing(Progress(CHAIN, 0.0), "link", "draft")
    progress.skip(3.0, "fix")
    assert progress.ready() == ("judge",)
    assert passing(progress, "judge").done
    assert progress.stage("fix").state is StageState.SKIPPED


def test_a_running_stage_may_be_cut_short() -> None:
    progress = Progress(CHAIN, 0.0)
    progress.start(1.0, "link")
    progress.skip(4.0, "link")
    assert (progress.stage("link").started, progress.stage("link").ended) == (1.0, 4.0)


def test_a_failed_stage_ends_the_query() -> None:
    progress = passing(Progress(DIAMOND, 0.0), "link")
    progress.start(1.0, "short")
    progress.start(1.0, "long")
    progress.fail(2.0, "short")
    assert progress.failed
    assert not progress.done
    progress.finish(3.0, "long")
    assert progress.done
    assert progress.ready() == ()


def test_the_budget_is_split_again_at_every_release() -> None:
    progress = Progress(CHAIN, arrival=100.0, deadline=160.0)
    assert progress.budget(100.0, "link", COSTS) == 60.0 * 2 / 12
    passing(progress, "link", now=115.0)
    # 45 s are left for 6 + 3 + 1
    assert progress.budget(115.0, "draft", COSTS) == 27.0
    passing(progress, "draft", now=150.0)
    progress.skip(150.0, "fix")
    assert progress.budget(150.0, "judge", COSTS) == 10.0


def test_a_later_round_of_a_stage_gets_its_share_of_what_is_left_then() -> None:
    progress = passing(Progress(CHAIN, arrival=0.0, deadline=60.0), "link", "draft", now=20.0)
    progress.start(20.0, "fix")
    assert progress.budget(20.0, "fix", COSTS) == 30.0
    assert progress.budget(40.0, "fix", COSTS) == 15.0


def test_what_must_follow_is_the_costliest_chain() -> None:
    progress = Progress(DIAMOND, arrival=0.0, deadline=60.0)
    costs = {"link": 2.0, "short": 1.0, "long": 6.0, "judge": 2.0}
    assert progress.later_cost("link", costs) == 8.0
    passing(progress, "link", "long")
    assert progress.later_cost("link", costs) == 3.0


def test_the_costliest_chain_of_a_wide_workflow_is_found_at_once() -> None:
    names = [f"s{number}" for number in range(32)]
    stages = tuple(StageTemplate(name, after=tuple(names[:rank])) for rank, name in enumerate(names))
    progress = Progress(WorkflowTemplate(stages), arrival=0.0, deadline=60.0)
    assert progress.later_cost("s0", dict.fromkeys(names, 1.0)) == 31.0


def test_a_query_without_deadline_has_no_budgets() -> None:
    assert Progress(CHAIN, arrival=0.0).budget(5.0, "link", COSTS) is None


def test_a_late_query_has_negative_budgets() -> None:
    assert Progress(CHAIN, arrival=0.0, deadline=10.0).budget(22.0, "link", COSTS) == -2.0


def test_stages_of_unknown_cost_share_nothing_out() -> None:
    assert Progress(CHAIN, arrival=0.0, deadline=10.0).budget(0.0, "link", {}) == 10.0


def test_stages_are_listed_in_order_with_their_times() -> None:
    progress = Progress(CHAIN, 0.0)
    progress.start(1.0, "link")
    assert [(stage.name, stage.state) for stage in progress] == [
        ("link", StageState.RUNNING),
        ("draft", StageState.PENDING),
        ("fix", StageState.PENDING),
        ("judge", StageState.PENDING),
    ]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((), "at least one stage"),
        ((StageTemplate("a"), StageTemplate("a")), "'a' is empty or there twice"),
        ((StageTemplate(""),), "'' is empty"),
        ((StageTemplate("a", after=("b",)), StageTemplate("b")), "those are: none"),
        ((StageTemplate("a"), StageTemplate("b", after=("b",))), "those are: a"),
    ],
)
def test_stages_that_make_no_pipeline_are_refused(stages: tuple[StageTemplate, ...], message: str) -> None:
    with pytest.raises(InvalidTemplate, match=message):
        WorkflowTemplate(stages)


def test_a_stage_cannot_start_before_those_it_waits_for() -> None:
    with pytest.raises(InvalidTransition, match="'judge' cannot start: it is waiting for fix"):
        Progress(CHAIN, 0.0).start(0.0, "judge")


def test_a_stage_cannot_start_twice_or_finish_unstarted() -> None:
    progress = passing(Progress(CHAIN, 0.0), "link")
    with pytest.raises(InvalidTransition, match="'link' cannot start: it is Done"):
        progress.start(0.0, "link")
    with pytest.raises(InvalidTransition, match="'draft' cannot become Done: it is Pending"):
        progress.finish(0.0, "draft")
    with pytest.raises(InvalidTransition, match="cannot become Failed"):
        progress.fail(0.0, "draft")


def test_nothing_starts_after_a_failure() -> None:
    progress = passing(Progress(DIAMOND, 0.0), "link")
    progress.start(0.0, "short")
    progress.fail(0.0, "short")
    with pytest.raises(InvalidTransition, match="after a stage that failed"):
        progress.start(0.0, "long")


def test_an_unknown_stage_is_named() -> None:
    with pytest.raises(InvalidTransition, match="no stage is called 'x'; there are: link, draft, fix, judge"):
        Progress(CHAIN, 0.0).start(0.0, "x")
