"""Whatever is done to a receipt or to the adapters before it is found, and said."""

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import PublishError, ReceiptError
from services.core.models import ContentRole
from services.trainer.publish import MANIFEST
from services.trainer.receipts import reading, verifying
from services.trainer.receipts.lines import NAME, Header
from services.trainer.receipts.writing import parent_of, write_lines
from tests.unit.trainer.receipts import adapters


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track of three adapters, each continuing from the one before. Not to be changed."""
    return adapters.line_of(tmp_path_factory.mktemp("receipts") / "demo").parent


@pytest.fixture
def copy(track: Path, tmp_path: Path) -> Path:
    """The newest adapter of a copy of it."""
    return Path(shutil.copytree(track, tmp_path / "demo")) / "round-0003"


@pytest.fixture(scope="module")
def damaged(track: Path) -> Callable[[list[bytes]], Path]:
    """A copy of the newest adapter with these lines as its receipt."""
    folder = Path(shutil.copytree(track / "round-0003", track.parent / "damaged" / "round-0003"))

    def put(lines: list[bytes]) -> Path:
        (folder / NAME).write_bytes(b"".join(lines))
        return folder

    return put


@pytest.fixture(scope="module")
def lines(track: Path) -> list[bytes]:
    return (track / "round-0003" / NAME).read_bytes().splitlines(keepends=True)


def test_an_adapter_verifies_back_to_the_base_model(track: Path) -> None:
    receipt, chain = verifying.verify(track / "round-0003")
    assert [link.adapter for link in chain.links] == ["round-0003", "round-0002", "round-0001", "base"]
    assert chain.open_because is None
    assert receipt.contents == {
        ContentRole.TRAIN: 4, ContentRole.REPLAY: 1, ContentRole.VALIDATION: 1, ContentRole.HELD_OUT: 1
    }  # fmt: skip
    assert receipt.licences == {"MIT": 2, "BSD-3-Clause": 2, "": 1}


@given(st.data())
def test_a_changed_byte_is_found(
    damaged: Callable[[list[bytes]], Path], lines: list[bytes], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[number]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != lines[number][at]))
    line = lines[number][:at] + bytes([byte]) + lines[number][at + 1 :]
    with pytest.raises(ReceiptError):
        verifying.read(damaged([*lines[:number], line, *lines[number + 1 :]]))


@given(st.data())
def test_lines_removed_are_found(
    damaged: Callable[[list[bytes]], Path], lines: list[bytes], data: st.DataObject
) -> None:
    kept = data.draw(
        st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)).filter(lambda k: not all(k))
    )
    with pytest.raises(ReceiptError):
        verifying.read(damaged(list(itertools.compress(lines, kept))))


@given(st.data())
def test_lines_in_another_order_are_found(
    damaged: Callable[[list[bytes]], Path], lines: list[bytes], data: st.DataObject
) -> None:
    moved = data.draw(st.permutations(lines).filter(lambda order: order != lines))
    with pytest.raises(ReceiptError):
        verifying.read(damaged(moved))


@given(st.data())
def test_a_line_added_is_found(
    damaged: Callable[[list[bytes]], Path], lines: list[bytes], data: st.DataObject
) -> None:
    """One that is there already, or one of another content."""
    at = data.draw(st.integers(0, len(lines)))
    line = data.draw(st.sampled_from([*lines, adapters.content(99).encoded(), b"\n", b"{}\n"]))
    with pytest.raises(ReceiptError):
        verifying.read(damaged([*lines[:at], line, *lines[at:]]))


@given(st.data())
def test_a_receipt_cut_off_anywhere_is_found(
    damaged: Callable[[list[bytes]], Path], lines: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(lines)
    with pytest.raises(ReceiptError):
        verifying.read(damaged([whole[: data.draw(st.integers(0, len(whole) - 1))]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda at: [], "does not begin with a header"),
        (lambda at: at[1:], "does not begin with a header"),
        (lambda at: at[:-1], "cut off after line 10: the line that ends it is missing"),
        (lambda at: [*at[:4], at[4][:-9]], "cut off inside line 5"),
        (lambda at: [*at[:4], *at[5:]], "lines were removed: it has 9, and was written with 10"),
        (lambda at: [*at[:4], at[4], *at[4:]], "lines were added: it has 11, and was written with 10"),
        (lambda at: [*at[:4], at[5], at[4], *at[6:]], "lines were changed, exchanged or moved"),
        (lambda at: [*at[:4], b"no JSON\n", *at[5:]], "line 5 is no line of a receipt"),
        (lambda at: [*at, at[4]], "something was written behind the line that ends it"),
        (lambda at: [*at[:3], at[9], *at[3:]], "line 5 .train. is out of place"),
        (lambda at: [*at[:4], at[1], *at[4:]], "line 5 .source. is out of place"),
        (lambda at: [at[0].replace(b'"format":1', b'"format":2')], "its format is 2, this version"),
        (lambda at: [at[0], *at[2:]], "names a source that it does not list: 'flask'"),
    ],
)
def test_every_damage_is_named(
    damaged: Callable[[list[bytes]], Path], lines: list[bytes],
    change: Callable[[list[bytes]], list[bytes]], message: str,
) -> None:  # fmt: skip
    with pytest.raises(ReceiptError, match=message):
        verifying.read(damaged(change(lines)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contents": [30, 31]}, "is not the one|names another"),
        ({"header": {"tokens": 7}}, "its header says 7 tokens, its lines 150"),
        ({"header": {"snapshot": "0" * 64}}, "its lines are not those of the snapshot 000000000000"),
        ({"header": {"counts": {"train": 9}}}, "its header counts 9 train, its lines are others"),
    ],
)
def test_a_receipt_made_anew_around_a_lie_is_found(
    copy: Path, change: dict[str, object], message: str
) -> None:
    """Every line and the root recomputed: it disagrees with itself or with the manifest."""
    written: list[object] = []
    receipt = reading.read(copy, written.append)
    header = receipt.header.model_copy(update=change.get("header", {}))  # type: ignore[arg-type]
    if "contents" in change:
        written = [adapters.content(number) for number in change["contents"]]  # type: ignore[attr-defined]
        made = adapters.lines(written, number=3, parent=header.parent)  # type: ignore[arg-type]
        write_lines(copy, made)  # type: ignore[arg-type]
    else:
        header = Header.model_validate_json(header.model_dump_json(warnings=False))
        write_lines(copy, [header, *receipt.sources.values(), *written])  # type: ignore[list-item]
    with pytest.raises(ReceiptError, match=message):
        verifying.read(copy)


def test_the_receipt_of_another_adapter_is_refused(copy: Path) -> None:
    """Even where the manifest was made to name it."""
    shutil.copy(copy.parent / "round-0002" / NAME, copy / NAME)
    with pytest.raises(ReceiptError, match=r"agrees with itself, but manifest.json names another"):
        verifying.read(copy)
    manifest = json.loads((copy / MANIFEST).read_text())
    manifest["files"][NAME] = reading.read(copy).sha256
    (copy / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ReceiptError, match="is about another adapter: its round is 2, the manifest's 3"):
        verifying.read(copy)


def test_a_missing_receipt_is_told_from_an_old_adapter(copy: Path) -> None:
    (copy / NAME).unlink()
    with pytest.raises(ReceiptError, match="is missing: the adapter was published with one"):
        verifying.read(copy)
    manifest = json.loads((copy / MANIFEST).read_text())
    del manifest["files"][NAME]
    (copy / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ReceiptError, match="was published before adapters had receipts"):
        verifying.read(copy)


def test_a_folder_without_a_manifest_is_no_adapter(tmp_path: Path) -> None:
    with pytest.raises(ReceiptError, match="is not a published adapter"):
        verifying.read(tmp_path)


def test_another_file_of_the_adapter_is_verified_too(copy: Path) -> None:
    (copy / "README.md").write_text("Another text.\n")
    verifying.read(copy)
    with pytest.raises(PublishError, match=r"README.md is changed"):
        verifying.verify(copy)


def test_a_parent_made_anew_breaks_the_chain(copy: Path) -> None:
    """A grandparent that verifies by itself, trained on something else: its child names the true one."""
    shutil.rmtree(copy.parent / "round-0001")
    forged = adapters.adapter(copy.parent, adapters.lines([adapters.content(77)]))
    verifying.verify(forged)
    with pytest.raises(
        ReceiptError, match=r"the chain is broken: .*round-0001 is not the adapter that demo/round-0002"
    ):
        verifying.verify(copy)


def test_a_damaged_parent_is_named(copy: Path) -> None:
    receipt = copy.parent / "round-0002" / NAME
    receipt.write_bytes(receipt.read_bytes()[:-30])
    with pytest.raises(
        ReceiptError, match=r"round-0002/receipt.jsonl is damaged: it is cut off inside line 11"
    ):
        verifying.verify(copy)


def test_a_chain_whose_parent_is_not_here_ends_there(copy: Path) -> None:
    """A single folder on another machine: what is there verifies, and what is not there is said."""
    alone = Path(shutil.copytree(copy, copy.parent / "elsewhere" / "my-adapter"))
    _, chain = verifying.verify(alone)
    assert [link.adapter for link in chain.links] == ["round-0003"]
    assert "round-0002 is not beside it" in (chain.open_because or "")


def test_a_chain_ends_at_an_adapter_from_before_receipts(tmp_path: Path) -> None:
    old = adapters.line_of(tmp_path / "demo", 1)
    manifest = json.loads((old / MANIFEST).read_text())
    del manifest["files"][NAME]
    (old / MANIFEST).write_text(json.dumps(manifest))
    (old / NAME).unlink()
    made = adapters.lines([adapters.content(5)], number=2, parent=parent_of(old))
    _, chain = verifying.verify(adapters.adapter(tmp_path / "demo", made))
    assert [link.receipt is None for link in chain.links] == [False, True]
    assert chain.open_because == "round-0001 was published before adapters had receipts"


def test_an_adapter_cannot_be_its_own_ancestor(tmp_path: Path) -> None:
    """Rounds only go down along a chain: it ends."""
    first = adapters.line_of(tmp_path / "demo", 1)
    made = adapters.lines([adapters.content(5)], number=1, parent=parent_of(first))
    header = made[0].model_copy(update={"adapter": "round-0009"})
    folder = adapters.adapter(tmp_path / "demo", [header, *made[1:]])
    with pytest.raises(ReceiptError, match="cannot be the parent"):
        verifying.verify(folder)
