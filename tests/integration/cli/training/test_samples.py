"""`ratchet samples`: what the model would see."""

import json
import re
from pathlib import Path

import pytest

from services.cli.asking.locate import PathError
from services.cli.environment import Environment
from services.cli.training import samples
from services.core.errors import ConfigurationError, DatabaseUnavailableError, RatchetError
from services.core.models import ContentRole, Json
from services.trainer import samples_command
from services.trainer.ledger import Ledger
from services.trainer.recipes import files as recipe_files
from services.trainer.samples.make import make
from services.trainer.samples.sample import IGNORED
from tests.integration.processor.conftest import code
from tests.unit.trainer.known_tokenizers import tokenizer


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model as far as making samples needs it."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer("qwen").save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    return folder


@pytest.fixture
def recipe(base: Path, tmp_path: Path) -> str:
    """A recipe of completion pairs, short enough that a file is several."""
    path = tmp_path / "pairs.yaml"
    path.write_text(
        f"base_model: {base}\nmethod: lora\nmax_length: 256\nheld_out_min: 1\nvalidation_min: 1\n"
    )
    return str(path)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "draft.py"
    path.write_text(code("draft"))
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's work done in this process, which has transformers loaded already."""

    def ask(_environment: Environment, module: str, sent: Json) -> Json:
        assert module == samples.CHILD
        return dict(json.loads(json.dumps(samples_command.work(json.loads(json.dumps(sent))))))

    monkeypatch.setattr(samples.modelprocess, "ask", ask)


def tokens_between(output: str) -> tuple[str, str]:
    """The first sample without the marks: what is given, what is learned."""
    body = output.partition("\n")[2].partition("\n\n1 of")[0]
    given, _, learned = body.partition(samples.OPEN)
    return tuple(  # type: ignore[return-value]
        part.replace(samples.BETWEEN, "").replace(samples.CLOSE, "").replace("↵", "")
        for part in (given, learned)
    )


def test_a_file_needs_no_database(
    unreachable: Environment, recipe: str, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every token is shown, the learned ones between marks: together they are the sample's text."""
    samples.run(unreachable, recipe, most=1, file=str(draft), as_json=False)
    output = capsys.readouterr().out
    assert output.startswith("1/1  completion  draft.py  ")
    given, learned = tokens_between(output)
    assert given.endswith("<|im_start|>assistant\n")
    assert learned.startswith("```python\n")
    assert learned.rstrip().endswith("```<|im_end|>")
    assert "1 of " in output


@pytest.mark.usefixtures("here")
def test_json_has_the_rows_that_are_trained_on(
    unreachable: Environment, recipe: str, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same ids and labels as in a round; positions and documents begin anew together."""
    samples.run(unreachable, recipe, most=9, file=str(draft), as_json=True)
    answer = json.loads(capsys.readouterr().out)
    source = samples.from_file(unreachable, str(draft))
    made = make([source], recipe_files.load(recipe), tokenizer("qwen"), purpose="train", round_number=1)
    assert answer["made"] == len(made)
    ids = [token for row in answer["rows"] for token in row["input_ids"]]
    labels = [label for row in answer["rows"] for label in row["labels"]]
    assert ids == [token for sample in made for token in sample.ids]
    assert labels == [label for sample in made for label in sample.labels]
    for row in answer["rows"]:
        lengths = [document["length"] for document in row["documents"]]
        assert row["position_ids"] == [place for length in lengths for place in range(length)]
        assert row["document_ids"] == [n for n, length in enumerate(lengths) for _ in range(length)]
        assert all(
            label in (token, IGNORED) for token, label in zip(row["input_ids"], row["labels"], strict=True)
        )


@pytest.mark.usefixtures("here")
def test_without_a_track_the_best_contents_are_shown(
    settings: Environment, repo: Path, scan, recipe: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the file that each is of."""
    scan()
    samples.run(settings, recipe, most=1, file=None, as_json=False)
    assert re.match(r"1/1  completion  repo/src/(apples|pears)\.py  ", capsys.readouterr().out)


def test_a_track_shows_what_its_next_round_would_take(
    settings: Environment, database, repo: Path, scan, recipe: str
) -> None:
    """Its backlog, best first; what is learned already is not in it. Units come with it."""
    for number in range(12):
        (repo / f"more_{number}.py").write_text(code(f"more{number}"))
    scan()
    resolved = recipe_files.load(recipe)
    ledger = Ledger(database, resolved.name)
    lease = ledger.take(resolved.model_copy(update={"max_contents": 3}), "a trainer")
    assert lease is not None
    opened = ledger.open_or_resume(lease, resolved.model_copy(update={"max_contents": 3}), 0, 100)
    assert opened is not None
    ledger.fail(lease, "it crashed")
    had = {each.content_id for each in ledger.snapshot(opened.round_id)[ContentRole.TRAIN]}
    offered = samples.from_database(settings, resolved, 100)
    assert had
    assert not had & {each.content_id for each in offered}
    assert [each.score for each in offered] == sorted((each.score for each in offered), reverse=True)
    assert all(each.units and each.repository == "repo" for each in offered)


def test_without_contents_it_says_what_to_do(settings: Environment, recipe: str) -> None:
    with pytest.raises(RatchetError, match="--file"):
        samples.from_database(settings, recipe_files.load(recipe), 5)


def test_without_a_database_it_says_so(unreachable: Environment, recipe: str) -> None:
    with pytest.raises(DatabaseUnavailableError):
        samples.run(unreachable, recipe, most=1, file=None, as_json=False)


def test_a_file_that_would_be_refused_is_refused_with_its_reason(
    unreachable: Environment, tmp_path: Path
) -> None:
    """It is never trained on, so there is nothing to see."""
    (tmp_path / "short.py").write_text("x = 1\n")
    with pytest.raises(RatchetError, match="too_short"):
        samples.from_file(unreachable, str(tmp_path / "short.py"))
    with pytest.raises(PathError):
        samples.from_file(unreachable, str(tmp_path / "missing.py"))


@pytest.mark.usefixtures("here")
def test_what_the_tokenizer_lacks_is_one_line(
    unreachable: Environment, base: Path, draft: Path, tmp_path: Path
) -> None:
    """The child's error, not its traceback."""
    path = tmp_path / "fim.yaml"
    bare = tmp_path / "bare"
    tokenizer("chatml").save_pretrained(bare)
    (bare / "config.json").write_text('{"model_type": "qwen2"}')
    path.write_text(f"base_model: {bare}\nobjective: cpt\nfim_rate: 0.5\nmax_length: 256\n")
    with pytest.raises(ConfigurationError, match=r"fim_rate needs a tokenizer .* base_model .*bare has none"):
        samples.run(unreachable, str(path), most=1, file=str(draft), as_json=False)
