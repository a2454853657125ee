"""The benchmark of ingestion runs, on a small corpus and without datatrove. Its figures are not looked at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import corpus, growth, same_steps
from services.core.settings import PROJECT
from tests.integration.processor.conftest import code

FILES = 12


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A few files worth keeping, in a directory that the processor would pass over."""
    folder = tmp_path / "code" / "node_modules"
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"shelf{number}.py").write_text(code(f"things{number}"), encoding="utf-8")
    return folder.parent


def run(home: Path, *arguments: str) -> dict[str, object]:
    """The line of JSON that the benchmark ends with."""
    command = [sys.executable, "bench/ingest.py", "--home", str(home), *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return figures


def test_it_ends_with_all_figures(sources: Path, tmp_path: Path) -> None:
    """What the peer is needed for is null without it, all else is measured."""
    figures = run(tmp_path / "home", "--quick", "--without-peer", "--rounds", "1", str(sources))
    assert figures["files"] == figures["passed"] == FILES
    assert figures["same_steps_vs_datatrove"] is figures["kept_vs_datatrove"] is None
    for name in ("full_files_per_cpu_s", "two_workers_speedup", "rescan_files_per_s", "full_vs_floors"):
        assert isinstance(figures[name], float | int), name


def test_growth_reaches_its_sizes(sources: Path, tmp_path: Path) -> None:
    """Each size is reached with as many new files as it takes, nearly all of which are kept."""
    figures = run(tmp_path / "home", "--growth", "--sizes", "20,60", "--workers", "1", str(sources))
    points = figures["points"]
    assert isinstance(points, list)
    assert [point["files"] for point in points] == [20, 60]
    assert points[-1]["contents"] >= 60


def test_the_corpus_is_linked_under_names_that_are_not_passed_over(sources: Path, tmp_path: Path) -> None:
    """What lies in node_modules or site-packages is code like any other here."""
    found = corpus.gather([sources], 100, tmp_path / "ingest", tmp_path)
    assert len(found.files) == FILES
    assert all("node_modules_/" in name for name in found.files)


def test_our_arm_takes_the_steps_of_the_processor(sources: Path, tmp_path: Path) -> None:
    """A file that passes comes out with its score and band keys, one that does not is left out."""
    found = same_steps.look("a.py", code("boxes").encode())
    assert found is not None
    assert found[0].bands is not None
    assert same_steps.look("a.bin", b"\0") is None


def test_a_grown_text_is_another_of_the_same_shape() -> None:
    """Its length and its reserved words stay, its other words do not."""
    data = code("boxes").encode()
    one, other = growth.grown(data, 1), growth.grown(data, 2)
    assert len(one) == len(data)
    assert one != other
    assert one.count(b"return ") == data.count(b"return ")
    assert b"boxes" not in one
