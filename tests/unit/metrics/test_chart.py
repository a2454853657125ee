"""Charts: geometry that stays inside its box."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.metrics.chart import HEIGHT, LEFT, TOP, WIDTH, exponential, line_chart, lines_chart, nice_ticks

VALUES = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-6)


@given(st.lists(st.tuples(st.integers(0, 10**6), VALUES), min_size=1, max_size=50))
def test_every_point_lies_inside(data: list[tuple[int, float]]) -> None:
    """No curve leaves its axes."""
    chart = line_chart("Loss", "nats", sorted(data))
    assert chart is not None
    assert all(LEFT - 1 <= x <= WIDTH and TOP - 1 <= y <= HEIGHT for x, y in chart.points)


@given(VALUES, VALUES)
def test_ticks_enclose_the_values_and_are_few(one: float, two: float) -> None:
    """Between two and eight ticks, the first at or below and the last at or above."""
    low, high = sorted((one, two))
    ticks = nice_ticks(low, high)
    slack = 1e-6 * (ticks[1] - ticks[0]) + 1e-9
    assert 2 <= len(ticks) <= 8
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack


def test_what_is_not_finite_is_left_out() -> None:
    """A NaN loss draws no point and breaks no chart."""
    chart = line_chart("Loss", "nats", [(1, 2.0), (2, math.nan), (3, 1.0)])
    assert chart is not None
    assert chart.data == ((1, 2.0), (3, 1.0))


def test_nothing_to_draw_is_no_chart() -> None:
    """Without a finite value there is no chart at all."""
    assert line_chart("Loss", "nats", [(1, math.nan)]) is None


def test_the_description_says_where_the_curve_goes() -> None:
    """A screen reader hears first, last and lowest."""
    chart = line_chart("Loss", "nats", [(0, 3.0), (10, 1.5), (20, 2.0)])
    assert chart is not None
    assert chart.description == "Loss from 3 nats at step 0 to 2 at step 20; lowest 1.5 at step 10."


def test_several_lines_share_their_axes_and_one_table() -> None:
    """A step that a line has no value at is a gap in its column."""
    chart = lines_chart(
        "Entropy", "nats", {"analyzer": [(1, 1.0), (2, 0.5)], "coder": [(2, 2.0)], "none": []}
    )
    assert chart is not None
    assert [line.name for line in chart.lines] == ["analyzer", "coder"]
    assert chart.table == [(1, [1.0, None]), (2, [0.5, 2.0])]
    assert chart.description.startswith("Entropy, analyzer from 1 nats at step 1")
    assert chart.lines[0].points[1][0] == chart.lines[1].points[0][0]


@pytest.mark.parametrize(
    ("value", "written"), [(0.00035, "3.5e-4"), (1e-4, "1e-4"), (8.2137e-5, "8.214e-5"), (-2e-6, "-2e-6")]
)
def test_a_learning_rate_is_written_as_engineers_write_it(value: float, written: str) -> None:
    assert exponential(value) == written


def test_an_axis_of_small_figures_has_powers_of_ten() -> None:
    """Nought stays 0, and an axis that reaches higher has decimals."""
    small, larger = (line_chart("Figure", "", [(1, 0.0), (2, most)]) for most in (1e-3, 0.1))
    assert small is not None
    assert [tick.label for tick in small.values] == ["0", "5e-4", "1e-3"]
    assert larger is not None
    assert [tick.label for tick in larger.values] == ["0.00", "0.05", "0.10"]
