"""Solutions in a receipt: a line each, behind the contents, in the snapshot's hash."""

import hashlib
from pathlib import Path

import pytest

from services.core.errors import ReceiptError
from services.trainer.receipts import reading, writing
from services.trainer.receipts.exposure import Exposure
from services.trainer.receipts.lines import Content, Header, Line, Solution
from services.trainer.samples import solutions
from tests.unit.trainer.receipts import adapters


def solution(number: int, seen: int = 2) -> Solution:
    task, code = (hashlib.sha256(f"{what} {number}".encode()).hexdigest() for what in ("task", "code"))
    return Solution(
        task_set="easy", task=f"easy/{number}", task_sha256=task, sha256=code, seen=seen, samples=1,
        tokens=20 * seen,
    )  # fmt: skip


def lines(*found: Solution) -> list[Line]:
    """Four contents, and these behind them."""
    header, *others = adapters.lines([adapters.content(number) for number in range(4)])
    assert isinstance(header, Header)
    snapshot = hashlib.sha256()
    for each in others:
        if isinstance(each, Content):
            snapshot.update(each.role.encode() + bytes.fromhex(each.sha256))
    for one in found:
        snapshot.update(b"solution" + bytes.fromhex(one.task_sha256) + bytes.fromhex(one.sha256))
    tokens = header.tokens + sum(one.tokens for one in found)
    return [header.model_copy(update={"snapshot": snapshot.hexdigest(), "tokens": tokens}), *others, *found]


def read(folder: Path, made: list[Line]) -> reading.Receipt:
    writing.write_lines(folder, made)
    return reading.read(folder)


def test_a_receipt_counts_its_solutions_and_their_tokens(tmp_path: Path) -> None:
    receipt = read(tmp_path, lines(solution(1), solution(2, seen=0)))
    assert (receipt.solutions, receipt.solutions_seen) == (2, 2)
    assert receipt.tokens == 4 * 30 + 40


def test_another_solution_in_its_place_is_found(tmp_path: Path) -> None:
    """A receipt that was made anew around a lie is not that of the snapshot."""
    made = lines(solution(1), solution(2))
    with pytest.raises(ReceiptError, match="not those of the snapshot"):
        read(tmp_path, [*made[:-1], solution(3)])


def test_a_content_behind_a_solution_is_out_of_place(tmp_path: Path) -> None:
    *others, one = lines(solution(1))
    with pytest.raises(ReceiptError, match="out of place"):
        read(tmp_path, [*others[:-1], one, others[-1]])


def test_nothing_of_a_program_but_its_digest_is_in_a_receipt() -> None:
    told = solutions.Solution(
        7, "a" * 64, "b" * 64, "easy", "easy/7", "Asked in these words.", "x = 'secret'"
    )
    line = writing.solution(told, Exposure(seen=3, samples=1, tokens=60)).encoded()
    assert b"secret" not in line
    assert b"these words" not in line


def test_exposures_of_solutions_are_told_from_those_of_contents() -> None:
    told = solutions.Solution(7, "a" * 64, "b" * 64, "easy", "easy/7", "", "x")
    found = {3: Exposure(seen=1), -1: Exposure(seen=2), told.content_id: Exposure(seen=5)}
    assert writing.solutions_seen(found) == {7: 5}
