"""Charts are data that can be looked into."""

from hexflow_simulator.chart import Bar, Gantt, Phase, cumulative, parameter_curve


def test_a_distribution_gives_each_value_with_the_share_up_to_it() -> None:
    assert cumulative([3.0, 1.0, 2.0, 2.0]) == ((1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (3.0, 1.0))
    assert cumulative([]) == ()


def test_a_long_distribution_is_thinned_and_keeps_both_ends() -> None:
    points = cumulative([float(n) for n in range(10_000)], most=50)
    assert len(points) == 50
    assert points[0] == (0.0, 0.0001)
    assert points[-1] == (9999.0, 1.0)


def test_the_curve_of_a_parameter_is_in_order_and_points_out_two_values() -> None:
    curve = parameter_curve(
        "alpha", [(0.5, 30.0), (0.1, 40.0)], objective="P95 (s)", chosen=0.5, in_force=0.1
    )
    (series,) = curve.series
    assert series.points == ((0.1, 40.0), (0.5, 30.0))
    assert curve.verticals == ((0.1, "in force"), (0.5, "best"))
    assert (curve.x, curve.y, curve.name) == ("alpha", "P95 (s)", "alpha-curve")


def test_a_value_that_is_in_force_and_best_is_pointed_out_once() -> None:
    curve = parameter_curve("alpha", [(0.5, 30.0)], objective="P95 (s)", chosen=0.5, in_force=0.5)
    assert curve.verticals == ((0.5, "in force, and best"),)


def test_the_kinds_of_a_gantt_are_in_the_order_they_appear() -> None:
    bars = tuple(
        Bar(row="a", begin=begin, end=begin + 1, kind=kind, phase=Phase.DECODE)
        for begin, kind in ((0.0, "draft"), (1.0, "judge"), (2.0, "draft"))
    )
    assert Gantt(name="g", title="", x="s", rows=("a",), bars=bars).kinds == ("draft", "judge")
