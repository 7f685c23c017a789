"""A fleet in the middle of its work, drawn at random: what a decision is made in."""

from collections.abc import Iterator
from random import Random

from hexflow_scheduler import Call, Estimates, Instance, PrefixBlock, Profile
from hexflow_scheduler.active import ActiveCall
from hexflow_scheduler.dispatch.least_harm import LeastHarm
from hexflow_scheduler.fleet import Fleet
from hexflow_scheduler.load import InstanceLoad
from hexflow_scheduler.ordering.deadline import Deadline

PROFILES = (
    Profile(t0=0.021, t1=0.0002, t2=5e-8, c1=0.000146, c2=2e-9, kv_tokens=900_000, slots=128),
    Profile(t0=0.036, t1=0.0003, t2=9e-8, c1=0.00032, c2=4e-9, kv_tokens=500_000, slots=128),
    Profile(t0=0.029, t1=0.0003, t2=8e-8, c1=0.00041, c2=5e-9, kv_tokens=500_000, slots=64),
)
"""Like an A100, an A6000 and an L40S with a model of 32B."""


class BusyFleet:
    """Hold a fleet whose instances run and hold calls that were put there at random, under LeastHarm."""

    def __init__(self, random: Random, *, instances: int, calls: int, databases: int = 20) -> None:
        """Let each instance have about ``calls`` calls, of queries with one to five live ones."""
        self.random = random
        self.now = 1_700_000_000.0
        self.rule = LeastHarm()
        self.fleet = Fleet(Estimates(), Deadline())
        self._databases = databases
        self._number = 0
        self.rule.board.now = self.rule.board.instant(self.now)
        for number in range(instances):
            load = self.fleet.add(
                Instance(
                    instance_id=f"i{number}",
                    pool="p",
                    gpu_type="g",
                    models=frozenset({"m"}),
                    profile=random.choice(PROFILES),
                )
            )
            self.rule.attend(load)
        loads = list(self.fleet)
        for active in self._arrivals(instances * calls):
            load = random.choice(loads)
            self.rule.board.now = self.rule.board.instant(self.now)
            self.fleet.put(active, load)
            if load.can_start(active) and random.random() < 0.95:
                load.start(self.now, active)
            self.now += random.expovariate(instances / 2.0)

    def a_call(self, **changes: object) -> ActiveCall:
        """Return a call of a query of its own, or of the query ``query_id``, that arrives now."""
        random, number = self.random, self._number
        self._number += 1
        database = random.randrange(self._databases)
        prompt = random.choice((1500, 4000, 12_000))
        values: dict[str, object] = {
            "call_id": f"c{number}",
            "query_id": f"q{number}",
            "workflow": "w",
            "stage": f"s{number % 4}",
            "model": "m",
            "prompt_tokens": prompt,
            "max_tokens": 2000,
            "samples": random.choice((1, 1, 1, 3)),
            "prefix": (
                PrefixBlock(key=f"t{number % 4}", tokens=600),
                PrefixBlock(key=f"t{number % 4}/{database}", tokens=prompt // 2),
            ),
            "query_arrival": self.now - random.expovariate(1 / 30.0),
            "deadline": self.now + random.uniform(-30.0, 200.0) if random.random() < 0.9 else None,
        }
        call = Call(**{**values, **changes})  # type: ignore[arg-type]
        query = self.fleet.query(self.now, call)
        active = ActiveCall(
            call=call,
            query=query,
            order=number,
            released=self.now,
            output_tokens=random.lognormvariate(5.5, 0.7),
            rest_seconds=random.choice((0.0, 5.0, 20.0)),
        )
        query.calls[call.call_id] = active
        return active

    def siblings(self) -> list[ActiveCall]:
        """Return one to five calls of one query that arrive now."""
        first = self.a_call()
        count = self.random.choice((0, 0, 1, 3, 4))
        return [first, *(self.a_call(query_id=first.call.query_id) for _ in range(count))]

    def carry_on(self, active: ActiveCall, load: InstanceLoad) -> None:
        """Start a call that was placed if there is room, end one that runs, and let time pass."""
        if load.can_start(active):
            load.start(self.now, active)
        if load.running and self.random.random() < 0.8:
            ended = self.random.choice(list(load.running.values()))
            load.stop(self.now, ended)
            self.fleet.dismiss(ended)
            self.fleet.close(ended.call.query_id)
        self.now += self.random.expovariate(len(self.fleet) / 2.0)

    def _arrivals(self, count: int) -> Iterator[ActiveCall]:
        while count > 0:
            for active in self.siblings():
                yield active
                count -= 1
