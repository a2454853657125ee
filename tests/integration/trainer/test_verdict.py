"""`ratchet verdict` with a tiny model and an adapter, on real code in the database."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from services.cli import environment
from services.cli.environment import Environment
from services.cli.judging import verdict
from services.core.db import Database, as_json
from services.core.errors import ConfigurationError, RatchetError
from services.core.models import Json
from services.core.target import Target
from services.trainer import model, publish
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.suites import completion
from services.trainer.verdict import __main__ as child
from services.trainer.verdict import evidence
from services.trainer.verdict.evidence import Champion
from tests.integration.trainer import corpus
from tests.integration.trainer.conftest import standard_library

HELD_OUT = 12  # of the contents


@pytest.fixture
def recipe(recipe_file: Path) -> Recipe:
    return recipe_files.load(str(recipe_file), {})


@pytest.fixture
def adapters(recipe: Recipe, tmp_path: Path) -> Path:
    """ADAPTERS_DIR with a champion that was made in round 2."""
    base = model.load_base(recipe, model.locate(recipe.base_model, None, tmp_path))
    adapted = model.with_adapter(base, recipe, None)
    torch.manual_seed(0)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(std=0.05)
    track = tmp_path / "adapters" / recipe.name
    manifest = {
        "track": recipe.name, "round": 2, "kind": "adapter", "recipe": recipe.model_dump(mode="json"),
        "base_model": recipe.base_model, "base_revision": None,
        "metrics": {"training": {"seconds": 30.0}, "verdict": {"general": {
            "suite": "humaneval-loss", "metric": "nats", "change": -0.004, "low": -0.01, "margin": 0.02}}},
    }  # fmt: skip
    publish.publish(track, "round-0002", lambda folder: model.save(adapted, folder, {}), manifest)
    publish.point_current(track, "round-0002")
    return track.parent


@pytest.fixture
def rounds(database: Database, recipe: Recipe, store: Callable[[list[str]], None]) -> None:
    """Two finished rounds; the second is judged by every third content."""
    store(standard_library(3 * HELD_OUT))
    training = as_json({"seconds": 20.0})
    with database.transaction() as tx:
        tx.execute("ensure_track", track=recipe.name, recipe=as_json(recipe.model_dump(mode="json")))
        for number, state in enumerate(("refused", "promoted"), 1):
            corpus.run(
                tx,
                "INSERT INTO rounds"
                " (track, number, recipe, snapshot_hash, state, closed_at, training, held_out)"
                " VALUES (%(track)s, %(number)s, '{}', '', %(state)s, now(), %(training)s, %(held_out)s)"
                " RETURNING id",
                track=recipe.name, number=number, state=state, training=training,
                held_out=as_json({"kind": "cluster"}),
            )  # fmt: skip
        corpus.run(
            tx,
            "INSERT INTO round_contents (round_id, content_id, role, position, source, path)"
            " SELECT r.id, c.id, 'held_out', c.id, 'repo', f.path"
            " FROM rounds r, contents c JOIN files f ON f.content_id = c.id"
            " WHERE r.number = 2 AND c.id % 3 = 0 RETURNING round_id",
        )


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's work done in this process, which has torch loaded already, with short answers."""

    def measured(environment: Environment, champion: Champion, read: Json, items: int) -> Json:
        sent = json.loads(json.dumps(verdict.asked(champion, read, items)))
        return dict(json.loads(json.dumps(child.measured(sent, environment.settings))))

    monkeypatch.setattr(verdict, "measured", measured)
    monkeypatch.setattr(completion, "NEW_TOKENS", {"line": 8, "block": 16})


def test_the_whole_verdict(
    target: Target,
    recipe_file: Path,
    tmp_path: Path,
    adapters: Path,
    rounds: None,
    here: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Four arms answer the same items; figures, recommendation and report are there."""
    secret = target.password.get_secret_value()
    variables = {
        "DATABASE_URL": f"postgresql://{target.user}:{secret}@{target.host}:{target.port}/{target.dbname}",
        "RATCHET_HOME": str(tmp_path),
        "ADAPTERS_DIR": str(adapters),
    }
    verdict.run(environment.read(variables, project=tmp_path), str(recipe_file), items=6, as_json=True)
    out, err = capsys.readouterr()
    found: Json = json.loads(out)
    arms = found["arms"]
    assert list(arms) == ["base", "retrieval", "adapter", "both"]
    assert arms["base"]["prompt_tokens"] == arms["adapter"]["prompt_tokens"] < arms["both"]["prompt_tokens"]
    assert all(0 < arm["latency_p50"] <= arm["latency_p90"] for arm in arms.values())
    assert found["items"] == 6
    assert 3 <= found["files"] <= 6
    assert found["training_seconds"] == 40.0  # of both rounds
    assert found["split"] == "cluster"
    assert found["elsewhere"]["change"] == -0.004
    assert found["recommendation"]["reasons"]
    texts = [each["answers"] for each in found["completions"]]
    assert any(each["base"]["text"] != each["adapter"]["text"] for each in texts)
    report = Path(found["report"])
    assert report == tmp_path / "reports" / "tiny" / "verdict.html"
    assert "Quality, time and cost" in report.read_text()
    assert json.loads((report.parent / "verdict.json").read_text())["items"] == 6
    assert "progress 6 6 both, one at a time" in err


def test_the_evidence_is_of_the_champions_round(
    database: Database, recipe: Recipe, adapters: Path, rounds: None
) -> None:
    """What is held out, what is searched of the same source, and the clusters as they have become."""
    champion = evidence.champion(adapters, recipe)
    with database.transaction() as tx:
        ids = [row.id for row in corpus.run(tx, "SELECT id FROM contents ORDER BY id")]
        clusters = [row.cluster_id for row in corpus.run(tx, "SELECT cluster_id FROM contents ORDER BY id")]
        corpus.merge_clusters(tx, clusters[0], clusters[2])
        found = evidence.read(tx, champion)
    assert {each.content_id for each in found.held_out} == {at for at in ids if at % 3 == 0}
    assert len(found.corpus) == 3 * HELD_OUT
    assert {text.source for text in found.corpus} == {"repo"}
    merged = {each.cluster_id for each in found.held_out if each.content_id == ids[2]}
    first = next(text for text in found.corpus if text.cluster_id in merged)
    assert sum(text.cluster_id == first.cluster_id for text in found.corpus) == 2


def test_without_a_champion_it_is_said_what_to_do(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"tiny has no champion .*ratchet up"):
        evidence.champion(tmp_path, recipe)


def test_without_the_round_in_the_database_it_is_said_what_to_do(
    database: Database, recipe: Recipe, adapters: Path
) -> None:
    champion = evidence.champion(adapters, recipe)
    with database.transaction() as tx, pytest.raises(RatchetError, match="knows no round 2 of tiny"):
        evidence.read(tx, champion)


def test_without_held_out_code_it_is_said_what_to_do(
    database: Database, recipe: Recipe, adapters: Path, rounds: None
) -> None:
    champion = evidence.champion(adapters, recipe)
    with database.transaction() as tx:
        corpus.run(tx, "DELETE FROM round_contents RETURNING round_id")
        with pytest.raises(RatchetError, match="round 2 of tiny held nothing out: add more code"):
            evidence.read(tx, champion)
