"""How the daemon judges its child."""

from dataclasses import replace

from services.core.models import ServiceState
from services.trainer.daemon.judge import BACKOFF_MAX, Watched, backoff
from services.trainer.heartbeat import Beat, Heart, read

TRAINING = Beat(counter=1, state=ServiceState.TRAINING)
LOADING = Beat(counter=1, state=ServiceState.STARTING)


def is_stuck(beat: Beat, seconds: float) -> bool:
    watched = Watched(since=0.0).seen(beat, 0.0)
    return watched.seen(beat, seconds).is_stuck(seconds, stall_timeout=60, load_timeout=1800)


def test_a_training_child_without_progress_is_stuck_within_a_minute() -> None:
    """The same counter for longer than the limit."""
    assert not is_stuck(TRAINING, 59)
    assert is_stuck(TRAINING, 61)


def test_a_long_load_is_not_a_stall() -> None:
    """Ten minutes of loading a model raise no alarm."""
    assert not is_stuck(LOADING, 600)
    assert is_stuck(LOADING, 1801)


def test_only_a_moving_counter_is_a_sign_of_life() -> None:
    """Reading the same file again is none."""
    watched = Watched(since=0.0).seen(TRAINING, 1.0)
    assert watched.seen(TRAINING, 50.0).since == 1.0
    assert watched.seen(replace(TRAINING, counter=2), 50.0).since == 50.0


def test_waiting_doubles_up_to_five_minutes() -> None:
    """A crash loop does not burn the machine."""
    assert [backoff(n) for n in (1, 2, 3, 20)] == [2, 4, 8, BACKOFF_MAX]


def test_a_beat_survives_the_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """What the child writes is what the daemon reads."""
    Heart(tmp_path).beat(urgent=True, state=ServiceState.TRAINING, step=3, loss=1.5, message="x")
    beat = read(tmp_path)
    assert beat is not None
    assert (beat.state, beat.step, beat.loss, beat.counter) == (ServiceState.TRAINING, 3, 1.5, 1)
