import io

from rich.console import Console

from hexflow_cli.watch import QueryWatch


def picture(watch: QueryWatch) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(watch)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def a_watch() -> QueryWatch:
    return QueryWatch(question="?", elapsed=lambda: 3.25)


def test_a_stage_shows_where_its_calls_run_and_how_many_are_done() -> None:
    watch = a_watch()
    watch.take("query.accepted", {"id": "q", "deadlineSeconds": 60.0})
    watch.take("stage.started", {"stage": "candidate-generation"})
    for name, instance in (("a", "a100-0"), ("b", "a100-0"), ("c", "l40s-0")):
        watch.take("call.placed", {"stage": "candidate-generation", "id": name, "instance": instance})
    watch.take("call.finished", {"stage": "candidate-generation", "id": "c", "status": "Done"})
    assert watch.current == "candidate-generation"
    assert watch.instances == {"a100-0": 2}
    assert "3.2 s of 60 s" in picture(watch)
    assert "1 of 3 calls done, on a100-0 ×2" in picture(watch)


def test_a_finished_stage_shows_its_calls_statements_and_seconds() -> None:
    watch = a_watch()
    watch.take("stage.started", {"stage": "self-correction"})
    watch.take("call.placed", {"stage": "self-correction", "id": "a", "instance": "a6000-0"})
    watch.take("call.finished", {"stage": "self-correction", "id": "a", "status": "Done"})
    watch.take("statement.tried", {"stage": "self-correction", "error": "no such column"})
    watch.take("statement.tried", {"stage": "self-correction", "error": None})
    watch.take("stage.finished", {"stage": "self-correction", "status": "Done", "seconds": 2.5})
    assert "✓ self-correction 1 call on a6000-0; 2 statements tried, 1 failed 2.5 s" in picture(watch)


def test_a_call_that_moves_to_another_instance_is_counted_once() -> None:
    watch = a_watch()
    watch.take("call.placed", {"stage": "s", "id": "a", "instance": "a100-0"})
    watch.take("call.placed", {"stage": "s", "id": "a", "instance": "l40s-0"})
    assert watch.instances == {"l40s-0": 1}


def test_events_of_a_newer_router_are_no_concern() -> None:
    watch = a_watch()
    watch.take("brand.new", {"surprise": 1})
    watch.take("stage.finished", {"stage": "s", "status": "Pondered"})
    assert "3.2 s" in picture(watch)
