"""What forgetting leaves on disk, and how it speaks of what it measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from services.cli.learned.forget_words import extraction
from services.core.settings import Settings
from services.trainer.extraction import Extraction
from services.trainer.forgetting import check, passages, remains
from services.trainer.forgetting.words import Figures, OpenRound


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        ratchet_home=tmp_path / "home",
        checkpoints_dir=tmp_path / "checkpoints",
        cache_dir=tmp_path / "cache",
        logs_dir=tmp_path / "logs",
        adapters_dir=tmp_path / "adapters",
    )


def written(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def table(path: Path, *content_ids: int) -> Path:
    columns = ["content_id", "prompt", "prediction", "truth"]
    rows = [[content_id, "a", "b", "c"] for content_id in content_ids]
    return written(path, json.dumps({"columns": columns, "data": rows}))


def test_files_that_may_quote_it_go_and_others_stay(settings: Settings) -> None:
    """Checkpoints of its rounds, cached answers, tables with a row of it; nothing else."""
    runs = settings.logs_dir / "wandb"
    events = settings.logs_dir / "tensorboard" / "demo"
    goes = [
        written(settings.checkpoints_dir / "demo" / "round-0002" / "checkpoint-1" / "state.json"),
        written(settings.cache_dir / "results" / "abc.jsonl"),
        table(runs / "run-1" / "files" / "media" / "table" / "predictions_5_a.table.json", 7, 3),
        written(runs / "run-3" / "predictions_6_c.table.json", "{torn"),
        written(events / "round-0001" / "events.out.tfevents.1", "predictions/3 text"),
    ]
    stays = [
        written(settings.checkpoints_dir / "demo" / "round-0003" / "state.json"),
        table(runs / "run-2" / "predictions_5_b.table.json", 8),
        written(events / "round-0002" / "events.out.tfevents.1", "train/loss"),
        written(settings.cache_dir / "models" / "config.json"),
    ]
    told = remains.remove(settings, [OpenRound("demo", 2)], [3])
    assert [path.exists() for path in goes] == [False] * len(goes)
    assert [path.exists() for path in stays] == [True] * len(stays)
    assert len(told) == len(goes)
    assert remains.remove(settings, [OpenRound("demo", 2)], [3]) == []


def test_the_champion_is_never_deleted(settings: Settings) -> None:
    for name in ("round-0001", "round-0002"):
        written(settings.adapters_dir / "demo" / name / "a.safetensors")
    (settings.adapters_dir / "demo" / "current").symlink_to("round-0001")
    adapters: list[dict[str, Any]] = [{"track": "demo", "directory": f"round-000{n}"} for n in (1, 2, 3)]
    assert remains.remove_adapters(settings, adapters) == ["demo/round-0002"]
    assert (settings.adapters_dir / "demo" / "current" / "a.safetensors").exists()


def test_passages_are_the_owners_alone_and_leave_nothing(tmp_path: Path) -> None:
    path = tmp_path / "forgetting" / "1.json"
    passages.keep(path, {"demo": ["secret"]})
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert passages.kept(path) == {"demo": ["secret"]}
    linked = tmp_path / "linked"
    linked.hardlink_to(path)
    passages.drop(path)
    passages.drop(path)
    assert not any(path.parent.iterdir())
    assert set(linked.read_bytes()) == {0}
    assert passages.kept(path) == {}


def test_figures_add_up() -> None:
    found = [Extraction("a", True, 50, 50, None), Extraction("b", False, 20, 50, None)]
    exposed = [Extraction("s", False, 1, 4, 3.0), Extraction("t", False, 1, 4, 5.0)]
    assert check.figures(found, exposed, "round-0001") == Figures("round-0001", 2, 1, 100, 70, 4.0)
    assert check.figures([], [], None) == Figures(None, 0, 0, 0, 0, None)


def test_one_sentence_tells_before_after_and_base() -> None:
    before = Figures("round-0003", 40, 12, 2000, 1400, 9.2).as_json()
    after = Figures(None, 40, 0, 2000, 700, 1.5).as_json()
    assert extraction("demo", {"before": before, "after": after, "base": after}) == (
        "demo: 12 of 40 passages could be written out before (round-0003), 0 after (base); base 0;"
        " tokens foreseen: 70 % before, 35 % after, 35 % base; exposure of strings: 9.2, 1.5, 1.5 bits"
    )
    assert "0 of 40" not in extraction("demo", {"problem": "no memory"})
    assert "not measured; base 0" in extraction("demo", {"before": before, "base": after})
