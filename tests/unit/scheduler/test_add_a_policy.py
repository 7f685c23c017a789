"""The page that says how a policy is added is followed to the letter."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexflow_scheduler import InvalidParameter, Kernel, Policy, PrefixBlock, policy
from support.calls import SLOW, a_call, an_instance, calls, usage
from support.decisions import placed, sent, the_place, the_send
from support.rig import Rig, Step

PAGE = Path(__file__).parents[3] / "docs/how-to/add-a-policy.md"
SCHEMA = (PrefixBlock(key="shop", tokens=800),)


def module_of(page: str, path: str, folder: Path) -> ModuleType:
    """Write the page's module to a folder and import it."""
    (code,) = re.findall(rf"```python\n# {re.escape(path)}\n(.*?)```", page, flags=re.DOTALL)
    file = folder / Path(path).name
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"added_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def _the_page_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    page = PAGE.read_text(encoding="utf-8")
    base = "scheduler/src/hexflow_scheduler"
    warm = module_of(page, f"{base}/dispatch/warm_first.py", tmp_path).WarmFirst
    longest = module_of(page, f"{base}/dispatch/longest_first.py", tmp_path).LongestFirst
    shortest = module_of(page, f"{base}/ordering/shortest_first.py", tmp_path).ShortestFirst
    fewest = module_of(page, f"{base}/ordering/fewest_running.py", tmp_path).FewestRunning
    # The one line of each:
    monkeypatch.setitem(policy.DISPATCH_RULES, warm.name, warm)
    monkeypatch.setitem(policy.DISPATCH_RULES, longest.name, longest)
    monkeypatch.setitem(policy.QUEUE_RULES, shortest.name, shortest)
    monkeypatch.setitem(policy.QUEUE_RULES, fewest.name, fewest)
    yield
    for name in [name for name in sys.modules if name.startswith("added_")]:
        del sys.modules[name]


pytestmark = pytest.mark.usefixtures("_the_page_is_followed")


def two_instances(name: str, **parameters: float) -> Kernel:
    kernel = Kernel(Policy.named(name, **parameters))
    for instance_id in ("a", "b"):
        kernel.instance(0.0, an_instance(instance_id))
    return kernel


def test_the_added_names_are_policies_alone_and_in_pairs() -> None:
    assert {"WarmFirst", "WarmFirst+FCFS", "RoundRobin+ShortestFirst"} <= {*policy.policy_names()}


def test_the_added_dispatch_rule_follows_the_cache() -> None:
    kernel = two_instances("WarmFirst")
    first = placed(kernel.arrive(0.0, [a_call("first", prefix=SCHEMA)]))["first"]
    decisions = kernel.arrive(1.0, [a_call("second", prefix=SCHEMA)])
    assert placed(decisions) == {"second": first}
    assert dict(the_place(decisions, "second").scores)[first] == 0.8


def test_the_added_parameter_counts_and_has_its_bounds() -> None:
    kernel = two_instances("WarmFirst", tolerance=0.0)
    kernel.arrive(0.0, [a_call("first", prefix=SCHEMA)])
    assert placed(kernel.arrive(1.0, [a_call("second", prefix=SCHEMA)])) == {"second": "b"}
    with pytest.raises(InvalidParameter, match="tolerance of WarmFirst lies between 0 and 1000, not -1"):
        Policy.named("WarmFirst", tolerance=-1.0)


def test_a_rule_that_sees_siblings_together_places_the_longest_first() -> None:
    kernel = Kernel(Policy.named("LongestFirst"))
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    kernel.instance(0.0, an_instance("fast"))
    decisions = kernel.arrive(0.0, [a_call("short", max_tokens=10), a_call("long", max_tokens=400)])
    assert placed(decisions) == {"short": "slow", "long": "fast"}


def test_the_added_queue_rule_orders_what_waits() -> None:
    kernel = Kernel(Policy.named("RoundRobin+ShortestFirst"))
    kernel.instance(0.0, an_instance(takes_priority=True))
    kernel.arrive(0.0, calls(2))
    kernel.arrive(0.0, [a_call("long", max_tokens=90), a_call("short", max_tokens=10)])
    decisions = kernel.finished(3.0, "c0", usage())
    assert sent(decisions) == ["short"]
    # 1,000 tokens at 1 ms, 10 at 20 ms
    assert the_send(decisions, "short").priority == 1200


def test_the_added_rule_whose_keys_move_asks_again_for_each_call() -> None:
    kernel = Kernel(Policy.named("RoundRobin+FewestRunning"))
    kernel.instance(0.0, an_instance())
    kernel.arrive(0.0, [a_call("a0", workflow="a"), a_call("b0", workflow="b")])
    kernel.arrive(0.0, [a_call("a1", workflow="a"), a_call("a2", workflow="a"), a_call("b1", workflow="b")])
    # One of each runs. Whoever ends makes room for its own workflow, though all of a came before b1.
    assert sent(kernel.finished(3.0, "b0", usage())) == ["b1"]
    assert sent(kernel.finished(3.0, "b1", usage())) == ["a1"]
    assert sent(kernel.finished(3.0, "a0", usage())) == ["a2"]


@given(
    name=st.sampled_from(["WarmFirst", "LongestFirst", "WarmFirst+ShortestFirst", "WarmFirst+FewestRunning"]),
    arrivals=st.lists(st.tuples(st.integers(1, 4), st.integers(50, 1600), st.integers(0, 6)), max_size=8),
)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_added_rules_keep_what_every_policy_keeps(name: str, arrivals: list[tuple[int, int, int]]) -> None:
    rig = Rig(Kernel(Policy.named(name)))
    fleet = [Step("instance", (index, 0, 2, 4000, index)) for index in range(3)]
    steps = [Step("arrive", (count, prompt, 1, 90, 0, kind)) for count, prompt, kind in arrivals]
    rig.play([*fleet, *steps])
    rig.finish_all()
    assert len(rig.ends) == rig.arrived
