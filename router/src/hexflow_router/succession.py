"""The kernel in force and its successor.

Queue keys of two policies cannot be compared, so a kernel keeps its policy for life. When the resources name
another one, a new kernel takes over at the first moment when no call is outstanding; it inherits what was
learned, is told of every instance, and begins a new part of the event log. Parameters change at once.

So that the log can be read from somewhere near the end, a new part begins in the same way once an hour, if there is a
moment without calls and queries.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from hexflow_api import ParameterInForce
from hexflow_router.configuration import Configuration
from hexflow_router.driver import Driver
from hexflow_router.parameters import ParameterBook
from hexflow_scheduler import Estimates, InvalidParameter, Parameters, Policy, RecordingKernel, Relief

_log = logging.getLogger("hexflow.router")

DEMOTED_SHARE = 0.2
"""Share of the open queries that may give way at a time, where the objective is attainment."""
DROP_FACTOR = 1.3
"""Times the mean of its workflow that a query is late by when its last candidate is dropped."""
LOOK_AGAIN_SECONDS = 0.2
"""Real seconds between two looks whether a new policy may take over."""
PART_SECONDS = 3600.0
"""Age of a part of the event log (the router's seconds) at which another begins when it can."""
PART_LOOK_SECONDS = 5.0
"""Real seconds between two looks whether it can."""


class Succession:
    """Hold the kernel in force. For one event loop."""

    def __init__(
        self,
        configuration: Configuration,
        sink: Callable[[str], None],
        *,
        book: ParameterBook | None = None,
        estimates: Estimates | None = None,
    ) -> None:
        """Make the first kernel; ``sink`` gets the lines of the event log, ``book`` knows what was tuned.

        ``estimates`` are what an earlier process has learned.
        """
        self._sink = sink
        self._book = book or ParameterBook()
        self._configuration = configuration
        self._timer: asyncio.TimerHandle | None = None
        self._begun = 0.0
        self.kernel = RecordingKernel(policy_of(configuration), estimates, sink=sink)

    @property
    def policy(self) -> str:
        """The policy in force."""
        return self.kernel.policy.name

    @property
    def named_policy(self) -> str:
        """The policy that the resources name."""
        return policy_of(self._configuration).name

    def configure(self, configuration: Configuration, driver: Driver) -> None:
        """Take over the policy and the parameters of a configuration, as soon as may be."""
        waits = configuration is self._configuration
        self._configuration = configuration
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if policy_of(configuration) == self.kernel.policy:
            self._set_parameters(driver.clock())
        elif driver.outstanding:
            if not waits:
                _log.info(
                    "The policy %s takes over from %s when no call is outstanding.",
                    self.named_policy,
                    self.policy,
                )
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(LOOK_AGAIN_SECONDS, self.configure, configuration, driver)
        else:
            _log.info("The policy %s takes over from %s.", self.named_policy, self.policy)
            self._begin(driver)

    def _begin(self, driver: Driver) -> None:
        """Begin a new part of the event log, with a new kernel. Only while nothing is outstanding."""
        self.kernel = RecordingKernel(policy_of(self._configuration), self.kernel.estimates, sink=self._sink)
        self._begun = driver.clock()
        driver.succeed(self.kernel)
        self._set_parameters(self._begun)

    async def renew(self, driver: Driver, *, idle: Callable[[], bool]) -> None:
        """Begin a new part of the event log whenever one has become old and nothing runs, until cancelled."""
        self._begun = driver.clock()
        while True:
            await asyncio.sleep(PART_LOOK_SECONDS)
            old = driver.clock() - self._begun >= PART_SECONDS
            if old and not driver.outstanding and idle() and self._timer is None:
                self._begin(driver)

    def tuned(self, driver: Driver) -> None:
        """Put in force what the book says now."""
        if policy_of(self._configuration) == self.kernel.policy:
            self._set_parameters(driver.clock())

    def in_force(self) -> dict[str, dict[str, ParameterInForce]]:
        """Return the parameters in force of every workflow, by name: those that were set, and the policy's defaults."""
        view = self.kernel.view()
        found: dict[str, dict[str, ParameterInForce]] = {}
        for name, setup in self._configuration.workflows.items():
            said = self._book.of(setup.workflow)
            values = self.kernel.policy.values(view.workflow_parameters.get(name, Parameters()))
            found[name] = {
                each: said[each]
                if each in said and said[each].value == value
                else ParameterInForce(value=value, source="Default")
                for each, value in values.items()
            }
        return found

    def close(self) -> None:
        """Await no successor any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _set_parameters(self, now: float) -> None:
        known = self.kernel.view().workflow_parameters
        for workflow in {*known, *self._configuration.workflows}:
            parameters = parameters_of(self._configuration, workflow, self._book)
            if not parameters and workflow not in known:
                continue
            try:
                self.kernel.parameters(now, parameters, workflow=workflow)
            except InvalidParameter as problem:
                _log.warning("The parameters of workflow %r are not used: %s", workflow, problem)


def policy_of(configuration: Configuration) -> Policy:
    """Return the policy that the leading workflow names, with the relief that the workflows ask for."""
    leading = configuration.leading
    policy = Policy.named(leading.policy) if leading else Policy.named()
    return replace(policy, relief=relief_of(configuration))


def relief_of(configuration: Configuration) -> Relief:
    """Return what may be done where not all can be in time.

    Demotion touches every query, so that all workflows have to want it; what may be dropped each says of its own calls.
    """
    specs = [setup.workflow.spec for setup in configuration.workflows.values()]
    demotes = bool(specs) and all(spec.slo.objective == "Attainment" for spec in specs)
    drops = any(spec.scheduling.drop_late_candidates for spec in specs)
    return Relief(demote=DEMOTED_SHARE if demotes else 0.0, drop=DROP_FACTOR if drops else 0.0)


def parameters_of(
    configuration: Configuration, workflow: str, book: ParameterBook | None = None
) -> Parameters:
    """Return the parameters that a workflow's resource sets, or tuning has; none where there is no such workflow."""
    setup = configuration.workflows.get(workflow)
    if setup is None:
        return Parameters()
    said = (book or ParameterBook()).of(setup.workflow)
    return Parameters(**{name: each.value for name, each in said.items()})
