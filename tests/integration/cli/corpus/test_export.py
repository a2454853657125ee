"""Every stored text and every rejection in a file that others can check us by."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from backports import zstd

from services.cli.corpus import export
from services.core.errors import ConfigurationError, DatabaseUnavailableError
from tests.integration.processor.conftest import code


@pytest.fixture
def exported(settings, tmp_path):
    """`exported(rejected=True)`: the lines of an export, decoded."""

    def run(*, rejected: bool = False, environment=settings, name: str = "out.jsonl") -> list[dict]:
        target = tmp_path / name
        export.run(environment, str(target), rejected=rejected, force=True, as_json=False)
        return [json.loads(line) for line in target.read_text().splitlines()]

    return run


def test_a_stored_file_is_a_line_with_all_that_is_known_of_it(repo: Path, scan, exported) -> None:
    """The text as stored, its address, score, units by line and byte."""
    scan()
    first, second = exported()
    assert [(line["source"], line["path"]) for line in (first, second)] == [
        ("repo", "src/apples.py"),
        ("repo", "src/pears.py"),
    ]
    assert first["text"] == code("apples")
    assert first["sha256"] == hashlib.sha256(first["text"].encode()).hexdigest()
    assert first["score"] == sum(first["score_reasons"].values())
    (unit,) = first["units"]
    assert (unit["kind"], unit["name"], unit["start_line"]) == ("function", "count_apples", 4)
    assert first["text"].encode()[unit["start_byte"] : unit["end_byte"]].startswith(b"def count_apples")
    assert {"cluster", "licence", "commit", "changed_at", "percentile", "redactions"} <= first.keys()
    assert first["rejected"] is False


def test_rejections_are_there_when_asked_for(repo: Path, scan, exported) -> None:
    """With their reasons, in the order of paths."""
    scan()
    lines = exported(rejected=True)
    assert [line["path"] for line in lines] == ["short.py", "src/apples.py", "src/pears.py"]
    assert lines[0]["rejected"] is True
    assert lines[0]["reason"] == "too_short"
    assert "text" not in lines[0]


def test_what_is_gone_is_not_exported(repo: Path, scan, exported) -> None:
    scan()
    (repo / "src" / "apples.py").unlink()
    scan()
    assert [line["path"] for line in exported()] == ["src/pears.py"]


def test_redactions_are_exported_by_kind_and_line(repo: Path, scan, exported) -> None:
    """And the secret is not in the text."""
    (repo / "src" / "apples.py").write_text('KEY = "AKIAQ3EGRIVQ4CWXJ2SA"\n' + code("apples"))
    scan()
    line = exported()[0]
    assert [each["line"] for each in line["redactions"]] == [1]
    assert "AKIAQ3EGRIVQ4CWXJ2SA" not in json.dumps(line)


def test_a_licence_of_the_source_stands_for_files_without_one(
    repo: Path, ingest: Path, scan, exported
) -> None:
    """A file's own wins."""
    (ingest / "repo.ratchet.yaml").write_text("licence: MIT\n")
    (repo / "src" / "apples.py").write_text("# SPDX-License-Identifier: Apache-2.0\n" + code("apples"))
    scan()
    assert [line["licence"] for line in exported()] == ["Apache-2.0", "MIT"]


def test_two_files_of_one_text_are_two_lines(repo: Path, scan, exported) -> None:
    (repo / "copy.py").write_text(code("apples"))
    scan()
    lines = {line["path"]: line for line in exported()}
    assert lines["copy.py"]["sha256"] == lines["src/apples.py"]["sha256"]
    assert lines["copy.py"]["units"] == lines["src/apples.py"]["units"] != []


def test_more_files_than_a_page_holds_are_all_exported(repo: Path, scan, exported, monkeypatch) -> None:
    """Each once, whatever the size of a page and of a batch of texts."""
    nouns = [f"noun{number}{'x' * number}" for number in range(9)]
    for noun in nouns:
        (repo / f"{noun}.py").write_text(code(noun))
    scan()
    whole = exported(rejected=True)
    monkeypatch.setattr(export, "PAGE", 2)
    monkeypatch.setattr(export, "BATCH_BYTES", 1)
    assert exported(rejected=True) == whole
    assert len(whole) == 12


@pytest.mark.parametrize(
    ("name", "unpack"), [("o.jsonl.gz", gzip.decompress), ("o.jsonl.zst", zstd.decompress)]
)
def test_the_name_says_how_it_is_compressed(name, unpack, repo: Path, scan, settings, tmp_path) -> None:
    scan()
    export.run(settings, str(tmp_path / name), rejected=True, force=False, as_json=False)
    assert len(unpack((tmp_path / name).read_bytes()).splitlines()) == 3


def test_the_processor_may_export(repo: Path, scan, exported, settings_of) -> None:
    """As `docker-compose exec processor ratchet export -` does; what the owner gets is the same."""
    scan()
    assert exported(environment=settings_of("ratchet_processor"), rejected=True) == exported(rejected=True)


def test_a_role_that_may_not_read_texts_is_told_so(repo: Path, scan, settings_of, tmp_path) -> None:
    target = tmp_path / "out.jsonl"
    with pytest.raises(ConfigurationError, match="ratchet_metrics may not read the texts"):
        export.run(settings_of("ratchet_metrics"), str(target), rejected=False, force=False, as_json=False)
    assert not target.exists()


def test_an_export_that_fails_leaves_nothing(unreachable, tmp_path) -> None:
    """Neither the file nor the unfinished one, and the old one stays."""
    target = tmp_path / "out.jsonl"
    target.write_text("old\n")
    before = set(tmp_path.iterdir())
    with pytest.raises(DatabaseUnavailableError):
        export.run(unreachable, str(target), rejected=False, force=True, as_json=False)
    assert set(tmp_path.iterdir()) == before
    assert target.read_text() == "old\n"


def test_an_existing_file_is_replaced_only_when_told_to(settings, tmp_path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("old\n")
    with pytest.raises(ConfigurationError, match="exists: --force"):
        export.run(settings, str(target), rejected=False, force=False, as_json=False)
    export.run(settings, str(target), rejected=False, force=True, as_json=False)
    assert target.read_text() == ""


@pytest.mark.parametrize("wanted", ["none/out.jsonl", "."])
def test_a_target_that_cannot_be_is_named(wanted: str, settings, tmp_path, monkeypatch) -> None:
    """A folder that is missing, a folder itself."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=wanted):
        export.run(settings, wanted, rejected=False, force=True, as_json=False)
