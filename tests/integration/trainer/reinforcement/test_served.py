"""`ratchet serve` with a team: a client asks the analyzer, then the coder, as the documentation has it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.core.settings import PROJECT
from services.trainer import publish
from tests import published_team, served
from tests import tiny_model as tiny
from tests.published_team import PublishedTeam
from tests.served import Serving, until

pytestmark = pytest.mark.timeout(400)  # the first one waits for the server
DOCUMENT = PROJECT / "docs" / "how-to" / "serve-a-team.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> PublishedTeam:
    home = tmp_path_factory.mktemp("served")
    made = published_team.published(home, tiny.make(home / "model"))
    published_team.release(made.settings, made.recipe, "round-0002", parent="round-0001")
    return made


@pytest.fixture(scope="module")
def serving(made: PublishedTeam) -> Iterator[Serving]:
    adapters = Path(made.settings.adapters_dir)
    variables = served.environment(adapters.parent, Path(made.settings.recipe), Path(made.settings.cache_dir))
    with served.serving(adapters / made.recipe.name, {**variables, "OMP_NUM_THREADS": "1"}) as running:
        yield running


def test_the_example_of_the_documentation_runs(
    serving: Serving, made: PublishedTeam, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "it is a team: ask pair-analyzer, then pair-coder" in serving.said[1]
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    example = example.replace("http://127.0.0.1:8000", serving.url).replace("max_tokens=400", "max_tokens=8")
    example = example.replace('"adapters/', f'"{made.settings.adapters_dir}/')
    exec(compile(example, str(DOCUMENT), "exec"), {})
    assert capsys.readouterr().out.startswith("pair-coder@round-0001\n")


def test_after_a_promotion_every_role_is_of_the_new_release(serving: Serving) -> None:
    """And writes something else than its name wrote before; a round that is named writes what it did."""
    before = {role: serving.ask(f"pair-{role}", 8) for role in ("analyzer", "coder")}
    publish.point_current(serving.track_dir, "round-0002")
    until(lambda: serving.health().json()["serving"] == "round-0002")
    after = {role: serving.ask(f"pair-{role}", 8) for role in ("analyzer", "coder")}
    assert [model for model, _ in after.values()] == ["pair-analyzer@round-0002", "pair-coder@round-0002"]
    assert all(after[role][1] != before[role][1] for role in after)
    assert serving.ask("pair-coder@round-0001", 8) == before["coder"]
