"""The documentation as a site: every page has its place, every link leads somewhere, nothing is loaded."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.core.settings import PROJECT
from services.trainer.experiments.experiment import Experiment
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement
from tests.documents import DOCS, Block, blocks, pages

CONFIG = tomllib.loads((PROJECT / "zensical.toml").read_text(encoding="utf-8"))["project"]
LINK = re.compile(r"(?<!\\)\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^)\s]+)\)")
BLOCKS = [block for path in pages() for block in blocks(path)]
OUTSIDE = ("http://", "https://", "mailto:")


def named(entries: Any) -> Iterator[str]:
    """The pages of a navigation, in order."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from [value] if isinstance(value, str) else named(value)


def of_language(*languages: str) -> Any:
    chosen = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", chosen, ids=[f"{each.page}:{each.line}" for each in chosen])


def test_every_page_is_in_the_navigation_once() -> None:
    there = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    assert sorted(named(CONFIG["nav"])) == there


def test_every_decision_is_in_their_list() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    missing = [path.name for path in (DOCS / "decisions").glob("0*.md") if f"({path.name})" not in listed]
    assert not missing


def test_the_readme_leads_where_it_says() -> None:
    """Zensical looks at docs/ alone."""
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in LINK.findall(text) if not link.startswith(OUTSIDE)]
    assert links
    assert [link for link in links if not (PROJECT / link).exists()] == []


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_no_link_leaves_the_site_by_a_relative_path(path: Path) -> None:
    """A file of the project is no page: it would be dead on the site. Pictures and pages exist."""
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        if link.startswith((*OUTSIDE, "#")):
            continue
        target = (path.parent / link.partition("#")[0]).resolve()
        assert target.is_relative_to(DOCS), link
        assert target.exists(), link


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` makes it, without a warning."""
    copy = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, copy / "docs")
    shutil.copy(PROJECT / "zensical.toml", copy)
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        cwd=copy, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    assert done.returncode == 0, said.partition("Traceback")[0]
    return copy / "site"


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    """Zensical's strict mode: a link to a page or an anchor that is not there ends it."""
    assert (site / "index.html").is_file()
    assert len(list(site.rglob("*.html"))) > len(list(DOCS.rglob("*.md")))  # and a page for what is not found


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loaded = re.compile(
        r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(https?:|//)|@import|url\(["']?(https?:|//)"""
    )
    linked = re.compile(r"""<link[^>]*\srel=["']?(?:stylesheet|preconnect|preload|icon)[^>]*(https?:|//)""")
    for page in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = page.read_text(encoding="utf-8")
        assert not loaded.search(text), page
        assert not linked.search(text), page


def test_every_block_says_its_language() -> None:
    """Then it is coloured, and the commands in it are tested; cli.md shows nothing but commands."""
    silent = [f"{block.page}:{block.line}" for block in BLOCKS if not block.language]
    assert [each for each in silent if not each.startswith(("README.md", "docs/reference/cli.md"))] == []


@of_language("python")
def test_an_example_in_python_can_be_parsed(block: Block) -> None:
    compile("\n".join(block.lines), f"{block.page}:{block.line}", "exec")


@of_language("json")
def test_an_example_in_json_can_be_parsed(block: Block) -> None:
    json.loads("\n".join(block.lines))


@of_language("yaml")
def test_an_example_in_yaml_can_be_parsed_and_a_recipe_is_one(block: Block, tmp_path: Path) -> None:
    fields = yaml.safe_load("\n".join(block.lines))
    if fields.keys() & {"base_model", "model_name_or_path"}:
        for file in re.findall(r"\S+\.json\b", "\n".join(block.lines)):  # the agents
            agents = [
                {"role": role, "prompt": "…", "with_answer": role == "coder"}
                for role in ("analyzer", "coder")
            ]
            (tmp_path / file).write_text(json.dumps(agents), encoding="utf-8")
        recipe_files.resolve(tmp_path / "mine.yaml", fields, {})


FIELDS = {*Recipe.model_fields, *Reinforcement.model_fields, *Experiment.model_fields}
VALUES = {
    "appo",
    "auto",
    "control",
    "experiment",
    "fsdp2",
    "grpo",
    "lora",
    "tppo",
    "true",
    "zero3",
}  # of such fields
ROWS = [
    (f"{path.name}:{number}", name)
    for path in sorted((DOCS / "guides").glob("*.md"))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    if line.startswith("|")
    for cell in line.split("|")[2:]
    for name in re.findall(r"`([a-z][a-z0-9_]*)(?:: [^`]*)?`", cell)
]


@pytest.mark.parametrize(("where", "name"), ROWS)
def test_a_guide_names_fields_that_there_are(where: str, name: str) -> None:
    """What stands in lower case on the right of a guide's table is a field of a recipe or an experiment."""
    assert name in FIELDS | VALUES | set(recipe_files.available())
