"""Write docs/reference/policies.md out of the rules' docstrings and declared parameters; --check only compares."""

import argparse
import sys
from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path

from hexflow_api.policy import PINNED
from hexflow_api.workflowrules import TUNABLE
from hexflow_scheduler.dispatch import DispatchRule
from hexflow_scheduler.ordering import MovingRule, QueueRule
from hexflow_scheduler.policy import DEFAULT_POLICY, DISPATCH_RULES, QUEUE_RULES
from hexflow_simulator.knobs import BASELINES, GRID

PAGE = Path(__file__).parents[1] / "docs/reference/policies.md"


def _listed(names: Sequence[str]) -> str:
    """Return the names as a sentence has them."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([*([", ".join(quoted[:-1])] if quoted[1:] else []), quoted[-1]])


HEAD = f"""# Policies

<!-- Written by `make generate` from the rules' docstrings and parameters; change those. -->

A policy is a **dispatch rule** (which instance a call goes to) and a **queue rule** (in which order the calls that wait for one
instance are sent). A dispatch rule's name alone brings the queue rule that goes with it; any other pair is named with a plus:
`RoundRobin+Urgency`. The name goes into `scheduling.policy` of a workflow, or after `--policy`. The default is `{DEFAULT_POLICY}`.
Why they are as they are: [Scheduling](../explanation/scheduling.md). How to add one: [Add a policy](../how-to/add-a-policy.md).

All rules look at the same predictions: seconds from the instance's profile and what was learned of its speed, lengths of
output from such calls before, what of the prompt its prefix cache holds. So what differs is the rule alone. No parameter has a
unit but `beta` of `HexGenFlowLiteral`, which is what that rule is there to show.

A workflow gives {_listed(TUNABLE)} in `scheduling` (`exponent: {{value: 4}}` pins it, `{{seed: 3, min: 1, max: 5}}` leaves it to
[tuning](../how-to/tune.md)), and pins {_listed(PINNED)} (`fairness: {{value: 1}}`, for [tenants that share a
fleet](../how-to/share-among-tenants.md)). Others are for comparisons: `-p PowerOfTwo:seed=1`.
"""


def first_line(rule: type[DispatchRule] | type[QueueRule]) -> str:
    """Return what a rule's module says of it in a line, without its name in words."""
    line = _words(rule).split("\n\n")[0].replace("\n", " ")
    return (line.partition(": ")[2] or line).rstrip(".")


def page() -> str:
    """Return the page."""
    lines = [
        HEAD,
        "## Dispatch rules\n",
        "| name | an instance for each call | queue rule | parameters |",
        "| --- | --- | --- | --- |",
    ]
    for dispatch in DISPATCH_RULES.values():
        names = ", ".join(f"`{parameter.name}`" for parameter in dispatch.parameters)
        lines.append(
            f"| [`{dispatch.name}`](#{dispatch.name.lower()}) | {first_line(dispatch)} | `{dispatch.queue}` | {names} |"
        )
    lines += ["", "## Queue rules\n", "| name | who goes first | while calls wait |", "| --- | --- | --- |"]
    for ordering in QUEUE_RULES.values():
        moves = (
            "groups of calls change places"
            if isinstance(ordering(), MovingRule)
            else "their order stands still"
        )
        lines.append(f"| [`{ordering.name}`](#{ordering.name.lower()}) | {first_line(ordering)} | {moves} |")
    lines += [
        "",
        "## What stands for what\n",
        "| system or idea | policy | settings that a benchmark tries |",
        "| --- | --- | --- |",
    ]
    for system, name in BASELINES.items():
        tried = "; ".join(
            f"{parameter} {', '.join(f'{value:g}' for value in values)}"
            for parameter, values in GRID.get(name.partition("+")[0], {}).items()
        )
        lines.append(f"| {system} | `{name}` | {tried} |")
    lines.append("\n## The dispatch rules one by one")
    for dispatch in DISPATCH_RULES.values():
        lines += ["", f"### {dispatch.name}\n", _words(dispatch)]
        if dispatch.parameters:
            lines += ["", "| parameter | default | from | to | meaning |", "| --- | --- | --- | --- | --- |"]
            lines += [
                f"| `{each.name}` | {each.default:g} | {each.low:g} | {each.high:g} | {each.meaning} |"
                for each in dispatch.parameters
            ]
    lines.append("\n## The queue rules one by one")
    for ordering in QUEUE_RULES.values():
        lines += ["", f"### {ordering.name}\n", _words(ordering)]
    return "\n".join(lines) + "\n"


def _words(rule: type[DispatchRule] | type[QueueRule]) -> str:
    text = cleandoc(sys.modules[rule.__module__].__doc__ or "")
    return text.replace("``", "`")


def main() -> int:
    """Write the page, or say whether it is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is stale")
    if parser.parse_args().check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
