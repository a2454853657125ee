"""Results by weights and item."""

import multiprocessing
from pathlib import Path

import torch

from services.trainer.model.locate import Source
from services.trainer.suites.cache import Results, base_identity, version_of, weights_of
from services.trainer.suites.suite import Score


def score(item: str, value: float = 0.5, metric: str = "exact_match") -> Score:
    return Score(item, f"name of {item}", "group", metric, value, detail={"written": 'é\n"x"'})  # type: ignore[arg-type]


def test_what_was_added_is_there_for_the_next_process(tmp_path: Path) -> None:
    results = Results(tmp_path, "w")
    results.add([score("a"), score("a", 0.7, "edit_similarity"), score("b")])
    assert (
        results.of("a") == Results(tmp_path, "w").of("a") == [score("a"), score("a", 0.7, "edit_similarity")]
    )
    assert Results(tmp_path, "w").of("c") == []
    assert Results(tmp_path, "other").of("a") == []


def test_a_torn_last_line_counts_as_missing_and_harms_no_other(tmp_path: Path) -> None:
    Results(tmp_path, "w").add([score("a"), score("b")])
    path = tmp_path / "results" / "w.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    results = Results(tmp_path, "w")
    assert (results.of("a"), results.of("b")) == ([score("a")], [])
    results.add([score("b")])
    assert Results(tmp_path, "w").of("b") == [score("b")]


def test_the_newest_of_a_metric_counts(tmp_path: Path) -> None:
    Results(tmp_path, "w").add([score("a", 0.1)])
    Results(tmp_path, "w").add([score("a", 0.2)])
    assert Results(tmp_path, "w").of("a") == [score("a", 0.2)]


def _write(folder: Path, writer: int) -> None:
    results = Results(folder, "w")
    for number in range(50):
        results.add([score(f"{writer} {number}")])


def test_several_processes_may_add(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(tmp_path, number)) for number in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    results = Results(tmp_path, "w")
    assert all(results.of(f"{writer} {number}") for writer in range(3) for number in range(50))


def test_weights_are_known_by_base_and_what_was_trained(tmp_path: Path) -> None:
    weights = {"b": torch.ones(3, dtype=torch.bfloat16), "a": torch.zeros(2, 2)}
    (tmp_path / "adapter_model.safetensors").write_bytes(b"1")
    (tmp_path / "adapter_config.json").write_text("{}")
    found = [
        weights_of("base"),
        weights_of("other"),
        weights_of("base", weights),
        weights_of("base", tmp_path),
    ]
    (tmp_path / "adapter_config.json").write_text('{"r": 4}')
    found.append(weights_of("base", tmp_path))
    found.append(weights_of("base", {**weights, "a": torch.full((2, 2), 1e-9)}))
    assert len(set(found)) == len(found)
    assert weights_of("base", dict(reversed(weights.items()))) == found[2]


def test_a_base_is_known_by_commit_or_by_its_files(tmp_path: Path) -> None:
    assert base_identity(Source("a/b", "main"), numbers="nf4", commit="123") == "a/b@123 nf4"
    (tmp_path / "config.json").write_text("{}")
    source = Source(str(tmp_path), None)
    before = base_identity(source, numbers="nf4")
    assert base_identity(source, numbers="nf4") == before != base_identity(source, numbers="bfloat16")
    (tmp_path / "config.json").write_text('{"a": 1}')
    assert base_identity(source, numbers="nf4") != before


def test_a_version_is_of_the_items_not_of_their_order() -> None:
    assert version_of(["a", "b"]) == version_of(["b", "a"]) != version_of(["a"])
