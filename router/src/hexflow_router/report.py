"""What the router says of itself to the operator (`GET /v1/report`): put together from those who know. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from hexflow_api import ParameterInForce
from hexflow_api.report import (
    Report,
    ReportedInstance,
    ReportedParameter,
    ReportedPool,
    ReportedWorkflow,
)
from hexflow_router.configuration import Configuration
from hexflow_router.recent import RecentQuestions
from hexflow_router.watch import Watch


def report_of(
    configuration: Configuration,
    watches: Iterable[Watch],
    recent: RecentQuestions,
    *,
    parameters: Mapping[str, Mapping[str, ParameterInForce]],
    now: float,
) -> Report:
    """Return the report. ``parameters`` are those in force, by workflow; ``now`` is the router's."""
    instances: dict[str, list[ReportedInstance]] = {pool.name: [] for pool in configuration.fleet.pools}
    for watch in watches:
        said = ReportedInstance(url=watch.address.url, ready=watch.ready, message=watch.why_not)
        instances.setdefault(watch.pool.name, []).append(said)
    return Report(
        problems=configuration.reported,
        pools={name: ReportedPool(instances=_sorted(found)) for name, found in instances.items()},
        workflows={
            name: ReportedWorkflow(
                p95_seconds=recent.p95_seconds(name, now),
                attainment=recent.attainment(name, now),
                parameters={
                    each: ReportedParameter.model_validate(value.model_dump())
                    for each, value in parameters.get(name, {}).items()
                },
            )
            for name in configuration.workflows
        },
    )


def _sorted(found: Sequence[ReportedInstance]) -> tuple[ReportedInstance, ...]:
    return tuple(sorted(found, key=lambda each: each.url))
