"""The judge process: what hostile bytes may do to it, and what they may not do to anything else."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from services.processor import judging
from services.processor.judging import Judge, JudgeNotReadyError
from services.processor.reasons import Reason

GOOD = ("good.py", Path(__file__).with_name("test_watch.py").read_bytes())


@pytest.fixture
def judge() -> Iterator[Judge]:
    judge = Judge(None)
    yield judge
    judge.close()


@pytest.fixture
def wicked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the child, `judge` does to itself what the file says, as a broken parser might."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, services.processor.judge as module, services.processor.messages as messages\n"
        "messages.CPU_SECONDS = 1\n"
        "judge = module.judge\n"
        "def wicked(path, data, benchmarks):\n"
        "    if path.endswith('.wicked'): exec(data)\n"
        "    return judge(path.removesuffix('.wicked'), data, benchmarks)\n"
        "module.judge = wicked\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(judging, "WALL_SECONDS", 20.0)


def test_drafts_come_back_in_order(judge: Judge) -> None:
    """One judgement a file, whatever the number of files and requests."""
    files = [GOOD, ("a.png", b""), ("b.py", b"x = 1\n")] * 50
    answers = judge.judge(files)
    assert [answer.refused.reason if answer.refused else None for answer in answers] == [
        None, Reason.BINARY_TYPE, Reason.TOO_SHORT,
    ] * 50  # fmt: skip


def test_units_come_back(judge: Judge) -> None:
    """Of a text that parses; one that does not is refused."""
    ((good), (bad)) = judge.parse([("python", "def f(x):\n    return x\n"), ("python", "def f(:\n")])
    assert [unit.name for unit in good.units] == ["f"]
    assert bad.refused is not None
    assert bad.refused.reason is Reason.SYNTAX_ERROR


@pytest.mark.usefixtures("wicked")
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        (b"os.kill(os.getpid(), 11)", Reason.JUDGE_CRASHED),
        (b"os._exit(0)", Reason.JUDGE_CRASHED),
        (b"while True: pass", Reason.JUDGE_TIMEOUT),
        (b"x = bytearray(600_000_000)", Reason.JUDGE_CRASHED),
        (b"raise MemoryError", Reason.JUDGE_CRASHED),
        (b"os.write(1, bytes([255]) * 4)", Reason.JUDGE_CRASHED),  # four gigabytes are to follow
        (b"os.write(1, bytes([3, 0, 0, 0, 193, 193, 193]))", Reason.JUDGE_CRASHED),  # no msgpack
    ],
)
def test_a_file_that_ends_its_judge_harms_no_other(judge: Judge, deed: bytes, reason: Reason) -> None:
    """It is refused for it; the files around it are judged, by a new process."""
    answers = judge.judge([GOOD, ("bad.py.wicked", deed), GOOD])
    assert [answer.refused.reason if answer.refused else None for answer in answers] == [None, reason, None]


def test_the_child_knows_no_secret(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither password nor token of ours is in its environment, and no descriptor but its pipes."""
    monkeypatch.setenv("POSTGRES_PASSWORD", "open sesame")
    with Path("/dev/null").open("rb") as held:
        os.set_inheritable(held.fileno(), True)
        judge.judge([GOOD])
        child = psutil.Process(judge._child.pid)
        assert "POSTGRES_PASSWORD" not in child.environ()
        assert {path.name for path in Path(f"/proc/{child.pid}/fd").iterdir()} == {"0", "1", "2"}


def test_the_child_dies_with_its_parent(judge: Judge) -> None:
    """It asks the kernel to: nothing is left behind a killed processor."""
    judge.judge([GOOD])
    child = psutil.Process(judge._child.pid)
    os.kill(child.pid, signal.SIGTERM)  # what the kernel sends then
    assert child.wait(60) is not None


def test_a_broken_benchmark_file_is_named(tmp_path: Path) -> None:
    """The judge does not begin, and no file is refused for that."""
    (tmp_path / "broken.jsonl").write_text("{\n")
    with pytest.raises(JudgeNotReadyError, match=r"broken\.jsonl"):
        Judge(tmp_path).judge([GOOD])
