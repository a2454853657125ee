"""`ratchet compare` with a tiny model: held-out code of the database, prompts, a suite; and what is known."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.cli.judging import compare
from services.cli.judging.compare import Asked
from services.core.db import Database, as_json
from services.core.errors import RatchetError
from services.core.models import Json
from services.core.target import Target
from services.trainer.comparing import __main__ as child
from services.trainer.generation import Request
from services.trainer.suites import completion, keywords
from tests.integration.trainer import corpus
from tests.integration.trainer.conftest import standard_library
from tests.published_adapter import Published, published

HELD_OUT = 6  # of the contents


@pytest.fixture
def made(tiny_model: Path, tmp_path: Path) -> Published:
    return published(tmp_path, tiny_model)


@pytest.fixture
def here(target: Target, made: Published, tmp_path: Path) -> Environment:
    secret = target.password.get_secret_value()
    variables = {
        "DATABASE_URL": f"postgresql://{target.user}:{secret}@{target.host}:{target.port}/{target.dbname}",
        "RATCHET_HOME": str(tmp_path),
        "ADAPTERS_DIR": str(made.settings.adapters_dir),
        "RECIPE": made.settings.recipe,
    }
    return environment.read(variables, project=tmp_path)


@pytest.fixture
def held_out(database: Database, made: Published, store: Callable[[list[str]], None]) -> None:
    """Round 2 of the track was judged by some contents."""
    store(standard_library(HELD_OUT))
    recipe = as_json(made.recipe.model_dump(mode="json"))
    with database.transaction() as tx:
        tx.execute("ensure_track", track=made.recipe.name, recipe=recipe)
        corpus.run(
            tx,
            "INSERT INTO rounds (track, number, recipe, snapshot_hash, state, closed_at, training)"
            " VALUES (%(track)s, 2, '{}', '', 'promoted', now(), '{}') RETURNING id",
            track=made.recipe.name,
        )
        corpus.run(
            tx,
            "INSERT INTO round_contents (round_id, content_id, role, position, source, path)"
            " SELECT r.id, c.id, 'held_out', c.id, 'repo', f.path"
            " FROM rounds r, contents c JOIN files f ON f.content_id = c.id RETURNING round_id",
        )


@pytest.fixture
def asked_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The child's work done in this process, which has torch loaded already, with short answers."""
    modules: list[str] = []

    def ask(environment: Environment, module: str, sent: Json) -> Json:
        modules.append(module)
        return dict(
            json.loads(json.dumps(child.compared(json.loads(json.dumps(sent)), environment.settings)))
        )

    monkeypatch.setattr(modelprocess, "ask", ask)
    monkeypatch.setattr(completion, "NEW_TOKENS", {"line": 6, "block": 8})
    return modules


@pytest.fixture
def run(here: Environment, asked_here: list[str], capsys: pytest.CaptureFixture[str]) -> Callable[..., Json]:
    def run_(names: Sequence[str], html: Path | None = None, **fields: object) -> Json:
        asked = Asked(tuple(names), **fields)  # type: ignore[arg-type]
        compare.run(here, asked, html=html, force=False, shown=0, as_json=True)
        return dict(json.loads(capsys.readouterr().out))

    return run_


def test_held_out_code_is_completed_by_all(
    run: Callable[..., Json], held_out: None, made: Published, tmp_path: Path
) -> None:
    """The same items of the same files; a page with all of it; asked again, nothing is measured again."""
    page = tmp_path / "c.html"
    found = run(["base", "champion"], page, items=6)
    assert [each["name"] for each in found["subjects"]] == ["base", "champion"]
    assert found["asked"] == {"what": "completions", "of": "held-out code", "files": HELD_OUT}
    assert len(found["items"]) == 6
    assert all(item["before"] and item["wanted"] for item in found["items"])
    assert all(item["answers"].keys() == {"base", "champion"} for item in found["items"])
    assert {pair["metric"] for pair in found["pairs"]} == {"exact_match", "edit_similarity"}
    assert all(pair["wins"] + pair["losses"] + pair["ties"] == 6 for pair in found["pairs"])
    bits = [each["bits_per_byte"] for each in found["subjects"]]
    assert all(2 < each < 12 for each in bits)
    assert bits[0] != bits[1]
    assert found["items"][0]["name"].split(":")[0] in page.read_text()
    again = run(["base", f"tiny/{made.folder.name}"], items=6)
    assert [each["from_cache"] for each in again["subjects"]] == [12, 12]
    assert [each["bits_per_byte"] for each in again["subjects"]] == bits


def test_an_adapter_leaves_nothing_in_the_base_that_it_shared(
    run: Callable[..., Json], made: Published, tmp_path: Path
) -> None:
    """Two adapters on one base, asked together, answer as each does alone."""
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("def main():\nimport os\n")
    published(tmp_path, Path(made.recipe.base_model), name="other", lora_r=2, use_dora=True)
    options = {"prompts": prompts, "max_new_tokens": 6, "chat": False}
    together = run(["champion", "other", "base"], **options)
    cache = made.settings.cache_dir / "results"
    for path in cache.iterdir():
        path.unlink()
    for pair in (["champion", "base"], ["other", "base"]):
        alone = run(pair, **options)
        for item, expected in zip(alone["items"], together["items"], strict=True):
            assert item["answers"][pair[0]] == expected["answers"][pair[0]]


def test_prompts_with_answers_are_judged_and_others_only_compared(
    run: Callable[..., Json], tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "def f(", "answer": "x):\\n"}\n{"prompt": "import "}\n')
    found = run(["base", "champion"], prompts=prompts, max_new_tokens=4)
    assert found["agreements"][0]["answers"] == 2
    assert all(pair["wins"] + pair["losses"] + pair["ties"] == 1 for pair in found["pairs"])
    assert all(each["bits_per_byte"] > 1 for each in found["subjects"])
    assert [bool(item["answers"]["base"]["values"]) for item in found["items"]] == [True, False]


def test_a_suite_is_asked_by_name(run: Callable[..., Json], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "REQUEST", Request(2))
    found = run(["base", "champion"], suite="keywords")
    assert [each["figures"].keys() >= {"keywords"} for each in found["subjects"]] == [True, True]
    assert found["asked"]["of"] == "keywords"


def test_without_held_out_code_it_is_said_what_to_ask_instead(run: Callable[..., Json]) -> None:
    with pytest.raises(RatchetError, match=r"no held-out code of the track tiny: .*--prompts FILE"):
        run(["base", "champion"])
