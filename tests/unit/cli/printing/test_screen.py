"""What `ratchet up` shows, on a terminal and on a pipe."""

import io

from rich.console import Console

from services.cli.printing.screen import QUIET, Screen, Terminal


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def pipe():
    output, clock = io.StringIO(), Clock()
    return Screen(Terminal(output), clock), output, clock


def test_a_pipe_gets_only_the_rows_that_changed():
    screen, output, clock = pipe()
    screen.show([("ingest", "1 file"), ("gate", "nothing yet")])
    clock.now += QUIET
    screen.show([("ingest", "2 files"), ("gate", "nothing yet")])
    assert output.getvalue().splitlines() == ["ingest: 1 file", "gate: nothing yet", "ingest: 2 files"]


def test_a_pipe_is_not_flooded():
    """Between two progress lines pass at least a few seconds; the newest state is what is told then."""
    screen, output, clock = pipe()
    for step in range(100):
        screen.show([("training", f"step {step}")])
        clock.now += QUIET / 10
    assert output.getvalue().splitlines() == [f"training: step {step}" for step in range(0, 100, 10)]


def test_a_pipe_gets_no_escape_codes():
    screen, output, _ = pipe()
    screen.say("[bold]as it is[/bold]")
    assert output.getvalue() == "[bold]as it is[/bold]\n"


def test_a_terminal_keeps_progress_in_place_and_events_above():
    output = io.StringIO()
    screen = Screen(Console(file=output, force_terminal=True, width=60))
    screen.show([("ingest", "1 file")])
    screen.say("postgres runs again")
    screen.close()
    assert "postgres runs again" in output.getvalue()
    assert output.getvalue().count("\x1b[2K") > 0  # lines taken away again


def test_a_reader_that_goes_away_silences_the_screen():
    """`ratchet up | head`: a broken pipe must not keep the stack from stopping in good order."""

    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    screen = Screen(Terminal(Broken()))
    screen.say("one")
    screen.show([("ingest", "1 file")])
    screen.close()
