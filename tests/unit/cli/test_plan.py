import json
from pathlib import Path

import pytest

from hexflow_api import Resources, load_text
from hexflow_cli.plan import Seat, seats
from hexflow_emulator import parse

POOL = """
apiVersion: hexflow.dev/v1alpha1
kind: GPUPool
metadata: {name: a100}
spec:
  gpuType: A100-80GB
  model: {name: Qwen/Qwen2.5-Coder-32B-Instruct}
  tensorParallelSize: 2
"""


def planned(more: str) -> dict[Seat, tuple[str, ...]]:
    resources: Resources = load_text(POOL + more)
    return seats(resources, book=Path("/book.yaml"), time_scale=12.5)


def test_each_replica_of_an_emulated_pool_has_a_seat() -> None:
    assert [str(seat) for seat in planned("  emulated: true\n  replicas: 3\n")] == [
        "a100-0",
        "a100-1",
        "a100-2",
    ]
    assert [str(seat) for seat in planned("  emulated: true\n")] == ["a100-0"]


@pytest.mark.parametrize(
    "more",
    [
        "  emulated: true\n  suspend: true\n",
        "  emulated: true\n  replicas: 0\n",
        "  endpoints: [{url: http://h:1}]\n",
    ],
)
def test_pools_without_emulated_instances_have_none(more: str) -> None:
    assert planned(more) == {}


def test_the_command_line_is_one_that_the_emulator_understands_to_the_letter() -> None:
    (arguments,) = planned(
        "  emulated: true\n  maxModelLen: 8192\n  maxNumSeqs: 7\n  prefixCaching: false\n"
    ).values()
    options = parse([*arguments, "--port", "0"], environment={})
    assert options.warnings == ()
    assert (options.model, options.gpu) == ("Qwen/Qwen2.5-Coder-32B-Instruct", "A100-80GB")
    assert (options.max_model_len, options.profile.slots) == (8192, 7)
    assert (options.time_scale, options.book) == (12.5, Path("/book.yaml"))
    assert options.prompt_details
    assert "--no-enable-prefix-caching" in arguments
    assert arguments[arguments.index("--scheduling-policy") + 1] == "priority"


def test_priority_scheduling_can_be_switched_off() -> None:
    (arguments,) = planned("  emulated: true\n  priorityScheduling: false\n").values()
    assert "--scheduling-policy" not in arguments


def test_the_profile_in_force_goes_along() -> None:
    inline = "{t0: 0.1, t1: 0.2, t2: 0.3, c1: 0.4, c2: 0.5, kvTokens: 1000, slots: 9}"
    (arguments,) = planned(f"  emulated: true\n  profile: {{inline: {inline}}}\n").values()
    assert json.loads(arguments[arguments.index("--profile") + 1])["t0"] == 0.1
