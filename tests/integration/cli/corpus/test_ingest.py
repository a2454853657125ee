"""Taking sources in once, here and on a Ray cluster, to the same rows."""

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

from services.cli.asking.locate import PathError
from services.cli.corpus import ingest as command
from services.cli.corpus.distributed import Cluster
from services.core.errors import ConfigurationError
from tests.integration.processor.conftest import code

# By content: ids are given in the order in which chunks come.
FILES = """
SELECT s.name, s.kind, s.licence, f.path, f.language, f.reason, c.sha256, d.sha256, f.size_bytes, f.mtime_ns
FROM files f JOIN sources s ON s.id = f.source_id
LEFT JOIN contents c ON c.id = f.content_id LEFT JOIN contents d ON d.id = f.duplicate_of
WHERE f.retired_at IS NULL ORDER BY s.name, f.path"""
CONTENTS = """
SELECT c.sha256, c.language, c.text, c.score, c.score_reasons::text, c.licence, c.redactions::text,
       (SELECT min(o.sha256) FROM contents o WHERE o.cluster_id = c.cluster_id AND o.live) AS cluster
FROM contents c WHERE c.live ORDER BY c.sha256"""
UNITS = """
SELECT c.sha256, u.ordinal, u.kind, u.name, u.start_byte, u.end_byte, u.start_line, u.end_line
FROM units u JOIN contents c ON c.id = u.content_id WHERE c.live ORDER BY c.sha256, u.ordinal"""
SCORES = "SELECT language, score, contents FROM score_histogram WHERE contents > 0 ORDER BY language, score"
EVERYTHING = (
    "TRUNCATE sources, contents, files, claims, groups, bands, units, score_histogram, cluster_merges CASCADE"
)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Sources of several kinds, with copies, near copies, a secret, refusals and an archive."""
    root = tmp_path / "corpus"
    for name in ("orchard", "market"):
        (root / name / "src").mkdir(parents=True)
        (root / name / "node_modules").mkdir()
        for noun in ("apples", "pears", name):
            (root / name / "src" / f"{noun}.py").write_text(code(noun))
        (root / name / "tiny.py").write_text("x = 1\n")
    (root / "market" / "key.py").write_text('KEY = "AKIAQ3EGRIVQ4CWXJ2SA"\n' + code("keys"))
    long = "\n\n".join(code(noun) for noun in ("plums", "cherries", "quinces", "figs", "dates", "limes"))
    (root / "orchard" / "fruit.py").write_text(long)
    (root / "market" / "fruit.py").write_text(long + "\n# the same again\n")
    (root / "loose.py").write_text(code("loose"))
    with tarfile.open(root / "basket.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("basket/nuts.py")
        member.size = len(code("nuts"))
        archive.addfile(member, io.BytesIO(code("nuts").encode()))
    return root


@pytest.fixture
def take_in(settings, capsys):
    """`take_in(path)`: the JSON it prints."""

    def run(*paths: Path | str, ray: str | None = None, environment=settings) -> dict:
        command.run(environment, [str(path) for path in paths], workers=2, ray=ray, as_json=True)
        return json.loads(capsys.readouterr().out)

    return run


def test_a_folder_is_taken_in_like_the_ingest_folder(corpus: Path, take_in, files) -> None:
    """Each entry is a source; every file has a row."""
    told = take_in(corpus)
    assert told["complete"]
    assert [each["source"] for each in told["sources"]] == ["basket.tar.gz", "market", "orchard", "."]
    held = files()
    assert told["stored"] + sum(told["rejected"].values()) == len(held)
    assert held["orchard/tiny.py"] == "too_short"
    assert held["basket.tar.gz/basket/nuts.py"] is None
    assert held["./loose.py"] is None


def test_a_second_time_nothing_is_read(corpus: Path, take_in) -> None:
    """What is unchanged is skipped; an archive is not even opened."""
    take_in(corpus)
    told = take_in(corpus)
    assert (told["complete"], told["stored"], told["rejected"]) == (True, 0, {})


def test_an_archive_alone_is_one_source(corpus: Path, take_in, files) -> None:
    take_in(corpus / "basket.tar.gz")
    assert files() == {"basket.tar.gz/basket/nuts.py": None}


def test_a_repository_alone_is_one_source(corpus: Path, take_in, files) -> None:
    """A folder is one when it has a .git that is a repository."""
    git = corpus / "orchard" / ".git"
    for folder in ("objects", "refs"):
        (git / folder).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    take_in(corpus / "orchard")
    assert files().keys() >= {"orchard/src/apples.py", "orchard/tiny.py"}
    assert not any(path.startswith("market/") for path in files())


def test_a_source_with_options_that_cannot_be_meant_is_named_and_the_others_come_in(
    corpus: Path, take_in, files
) -> None:
    (corpus / "market.ratchet.yaml").write_text("inclde: x\n")
    told = take_in(corpus)
    assert not told["complete"]
    (market,) = [each for each in told["sources"] if each["source"] == "market"]
    assert "inclde" in market["problem"]
    assert "orchard/src/apples.py" in files()


def test_two_sources_of_one_name_are_refused(corpus: Path, tmp_path: Path, take_in) -> None:
    """The second would retire the first."""
    (tmp_path / "other" / "market").mkdir(parents=True)
    with pytest.raises(PathError, match="market"):
        take_in(corpus, tmp_path / "other")


def test_a_path_that_is_nothing_is_named(tmp_path: Path, take_in) -> None:
    with pytest.raises(PathError, match="nowhere"):
        take_in(tmp_path / "nowhere")


def test_beside_a_running_processor_it_refuses(
    corpus: Path, repo: Path, ingest: Path, take_in, database
) -> None:
    """The processor would retire what is not in its folder; in that folder both may work."""
    with database.transaction() as transaction:
        transaction._cursor.execute(
            "INSERT INTO heartbeats (service, instance, state) VALUES ('processor', 'host:1', 'idle')"
        )
    with pytest.raises(ConfigurationError, match="host:1"):
        take_in(corpus)
    assert take_in(ingest)["complete"]


def test_the_processors_role_may_take_in(corpus: Path, take_in, settings_of, files) -> None:
    take_in(corpus, environment=settings_of("ratchet_processor"))
    assert files()["orchard/tiny.py"] == "too_short"


def test_without_ray_the_error_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"pip install \"ray\[data\]=="):
        Cluster("auto")


@pytest.fixture
def emptied(database):
    """`emptied()`: as if nothing had ever come in."""

    def empty() -> None:
        with database.transaction() as transaction:
            transaction._cursor.execute(EVERYTHING)

    return empty


def test_a_folder_behind_a_url_makes_the_same_rows(corpus: Path, take_in, rows, emptied) -> None:
    """But for the times of files, which its file system tells in its own way; archives stay out."""
    (corpus / "orchard" / ".gitignore").write_text("pears.py\nbuild/\n")
    (corpus / "orchard" / "build").mkdir()
    (corpus / "orchard" / "LICENSE").write_text(
        "MIT License\n\nPermission is hereby granted, free of charge, to"
    )
    (corpus / "basket.tar.gz").unlink()
    (corpus / "loose.py").unlink()
    pytest.importorskip("fsspec")
    take_in(corpus)
    here = [rows(query) for query in (FILES, CONTENTS, UNITS, SCORES)]
    emptied()
    assert take_in(f"file://{corpus}")["complete"]
    there = [rows(query) for query in (FILES, CONTENTS, UNITS, SCORES)]
    assert [row[:-1] for row in there[0]] == [row[:-1] for row in here[0]]
    assert there[1:] == here[1:]
    assert take_in(f"file://{corpus}")["stored"] == 0


@pytest.fixture
def two_nodes():
    """The address of a Ray cluster of two nodes on this machine, a core each."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as Nodes

    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    yield nodes.address
    ray.shutdown()
    nodes.shutdown()


def test_a_cluster_of_two_nodes_makes_the_same_rows(
    corpus: Path, take_in, rows, emptied, two_nodes: str
) -> None:
    """Files, contents, redactions, units and scores, whoever judged them; by path and by URL."""
    take_in(corpus)
    here = [rows(query) for query in (FILES, CONTENTS, UNITS, SCORES)]
    emptied()
    assert rows(FILES) == []
    assert take_in(corpus, ray=two_nodes)["complete"]
    assert [rows(query) for query in (FILES, CONTENTS, UNITS, SCORES)] == here
    take_in(f"file://{corpus}", ray=two_nodes)
    again = [rows(query) for query in (CONTENTS, UNITS, SCORES)]
    assert again == here[1:]


def test_an_address_without_a_cluster_is_an_error() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1:1"):
        Cluster("127.0.0.1:1")
