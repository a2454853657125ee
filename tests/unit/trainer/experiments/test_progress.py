"""How long it will take, and how that is shown."""

import io

import pytest

from services.trainer.experiments.display import Display
from services.trainer.experiments.progress import Pace, clock


def test_the_time_left_is_of_what_each_kind_took() -> None:
    """Two trainings at 10 s, 90 programs at 0.5 s, 100 to run at 0.1 s."""
    pace = Pace({"train": 3, "write": 100, "run": 110})
    pace = pace.after("train", 1, 10).after("write", 10, 5).after("run", 10, 1)
    assert pace.seconds_left == pytest.approx(2 * 10 + 90 * 0.5 + 100 * 0.1)


def test_it_is_unknown_until_all_kinds_are_known() -> None:
    pace = Pace({"train": 2, "write": 100}).after("train", 1, 10)
    assert pace.seconds_left is None
    assert Pace({"train": 1, "write": 0}).after("train", 1, 10).seconds_left == 0


@pytest.mark.parametrize(("seconds", "shown"), [(None, ""), (5, "0:05"), (125.4, "2:05"), (3725, "1:02:05")])
def test_clock(seconds: float | None, shown: str) -> None:
    assert clock(seconds) == shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_changes() -> None:
    stream, times = Terminal(), iter([0.0, 0.05, 0.2])
    display = Display(stream, lambda: next(times))
    for line in ("one", "too early", "two"):
        display.show(line)
    display.end("done")
    assert stream.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Kdone\n"


def test_a_log_has_a_line_now_and_then() -> None:
    stream, times = io.StringIO(), iter([0.0, 10.0, 31.0])
    display = Display(stream, lambda: next(times))
    for line in ("one", "too early", "two"):
        display.show(line)
    assert stream.getvalue() == "one\ntwo\n"
