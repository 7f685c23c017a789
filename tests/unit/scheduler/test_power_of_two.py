from collections import Counter

import pytest

from hexflow_scheduler import Kernel, Policy
from hexflow_scheduler.draw import draw, draw_two
from support.calls import SLOW, a_call, an_instance, calls
from support.decisions import placed, the_place


def a_fleet(count: int, **parameters: float) -> Kernel:
    kernel = Kernel(Policy.named("PowerOfTwo", **parameters))
    for number in range(count):
        kernel.instance(0.0, an_instance(f"i{number}"))
    return kernel


def test_a_draw_depends_on_its_seed_and_its_count_alone() -> None:
    # SplitMix64 of the states 1, 2, 3 times its constant, from the reference implementation.
    assert [draw(0, count, 1 << 64) for count in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
    assert draw(1, 0, 1 << 64) != draw(0, 0, 1 << 64)


def test_every_pair_of_two_different_ones_is_drawn_as_often() -> None:
    pairs = Counter(draw_two(7, count, 4) for count in range(12_000))
    assert len(pairs) == 12
    assert min(pairs.values()) > 900
    assert max(pairs.values()) < 1100


def test_of_the_two_that_are_drawn_the_less_busy_one_is_taken() -> None:
    kernel = a_fleet(5, seed=3.0)
    busy: Counter[str] = Counter()
    for number in range(40):
        place = the_place(kernel.arrive(0.0, [a_call(f"c{number}")]), f"c{number}")
        looked_at = dict(place.scores)
        assert len(looked_at) == 2
        assert looked_at == {name: -busy[name] for name in looked_at}
        assert busy[place.instance_id] == min(busy[name] for name in looked_at)
        busy[place.instance_id] += 1


def test_two_or_one_need_no_draw_and_speed_does_not_count() -> None:
    kernel = a_fleet(1)
    kernel.instance(0.0, an_instance("slow", profile=SLOW))
    assert [*placed(kernel.arrive(0.0, calls(4))).values()] == ["i0", "slow", "i0", "slow"]


@pytest.mark.parametrize("seed", [0.0, 5.0])
def test_the_same_seed_draws_the_same(seed: float) -> None:
    first, second = a_fleet(6, seed=seed), a_fleet(6, seed=seed)
    assert first.arrive(0.0, calls(20)) == second.arrive(0.0, calls(20))


def test_another_seed_draws_others() -> None:
    assert placed(a_fleet(6).arrive(0.0, calls(20))) != placed(a_fleet(6, seed=1.0).arrive(0.0, calls(20)))
