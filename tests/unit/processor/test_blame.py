"""When lines were written, told of repositories made commit by commit."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.processor.sources import blame, line_times
from services.processor.sources.blame import Blame
from tests.unit.processor.repositories import Made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "repo")


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def times(made: Made, files: Mapping[str, bytes], **limits) -> dict[str, line_times.Times]:
    """Of every line of these files, as they are at HEAD."""
    written = Blame(made.path, dict.fromkeys(files, False), **{"budget_seconds": 60.0, **limits}).run()
    return {path: line_times.at_head(files[path], written[path].spans) for path in written}


def test_a_line_is_as_old_as_the_commit_that_wrote_it(made: Made) -> None:
    """Whatever is written, changed or taken away above and below it; loose or packed."""
    first = made.commit({"a": text("one", "two", "three")}, seconds=100)
    second = made.commit({"a": text("zero", "one", "three")}, [first], seconds=200)
    files = {"a": text("zero", "one", "3", "four"), "new": text("x")}
    made.commit(files, [second], seconds=300)
    expected = {"a": [200, 100, 300, 300], "new": [300]}
    assert times(made, files) == expected
    made.pack()
    assert times(made, files) == expected


def test_white_space_makes_no_line_new(made: Made) -> None:
    """Indented, at the end, within, or as another line end."""
    first = made.commit({"a": b"if x:\nf(a,b)\ng()\n"}, seconds=100)
    files = {"a": b"if x:\r\n    f(a, b)\n    g()  \n    h()\n"}
    made.commit(files, [first], seconds=200)
    assert times(made, files) == {"a": [100, 100, 100, 200]}


def test_only_wanted_files_are_told(made: Made) -> None:
    """Names that are no UTF-8 as the database spells them."""
    files = {"a": b"x\n", "b": b"x\n", "caf\udce9": b"y\n"}
    made.commit(files, seconds=100)
    told = Blame(made.path, {"b": False, r"caf\xe9": False, "absent": False}, budget_seconds=60.0).run()
    assert sorted(told) == ["b", r"caf\xe9"]


def test_a_line_that_moved_within_its_file_is_not_new(made: Made) -> None:
    """Unless it is as short as a brace."""
    first = made.commit(
        {"a": text("imported", "}", "def a():", "    return the_answer()", "b", "c")}, seconds=100
    )
    files = {"a": text("b", "c", "imported", "}", "def a():", "        return the_answer()")}
    made.commit(files, [first], seconds=200)
    assert times(made, files) == {"a": [200, 200, 100, 100, 100, 100]}
    moved = {"a": text("        return the_answer()", "b", "c", "imported", "}", "def a():")}
    made.commit(moved, [made.repo.head().decode()], seconds=300)
    assert times(made, moved) == {"a": [100, 200, 200, 100, 100, 100]}


@pytest.mark.parametrize("edited", [False, True], ids=["as it was", "edited"])
@pytest.mark.parametrize("name", ["lib/a.py", "lib/test_a.py"])
def test_a_renamed_file_keeps_its_history(made: Made, name: str, edited: bool) -> None:
    """Moved with its name or under another one, with a line more or without."""
    lines = ["one", "two", "three", "four"]
    first = made.commit({"src/a.py": text(*lines), "src/b.py": text("other", "lines")}, seconds=100)
    files = {name: text(*lines, *["five"] * edited)}
    made.commit(files, [first], seconds=200)
    assert times(made, files) == {name: [100] * 4 + [200] * edited}


def test_a_new_file_beside_one_that_went_is_new(made: Made) -> None:
    """Less than half of its lines were there before."""
    first = made.commit({"a.py": text("one", "two", "three")}, seconds=100)
    files = {"b.py": text("one", "x", "y", "z")}
    made.commit(files, [first], seconds=200)
    assert times(made, files) == {"b.py": [200] * 4}


def test_a_merge_writes_only_what_no_parent_has(made: Made) -> None:
    """Lines of a branch are as old as on the branch."""
    base = made.commit({"a": text("1", "2", "3"), "b": text("b")}, seconds=100)
    left = made.commit({"a": text("left", "1", "2", "3"), "b": text("b")}, [base], seconds=200)
    right = made.commit({"a": text("1", "2", "3", "right"), "b": text("b", "c")}, [base], seconds=300)
    files = {"a": text("left", "1", "merged", "3", "right"), "b": text("b", "c")}
    made.commit(files, [left, right], seconds=400)
    assert times(made, files) == {"a": [200, 100, 400, 100, 300], "b": [100, 300]}


def test_lines_meet_again_where_branches_parted(made: Made) -> None:
    """Even when the clock of a commit is wrong and it is looked at before its children."""
    base = made.commit({"a": text("1", "2")}, seconds=500)
    left = made.commit({"a": text("left", "1", "2")}, [base], seconds=200)
    side = made.commit({"a": text("1", "2", "side")}, [base], seconds=50)
    right = made.commit({"a": text("1", "2", "side", "right")}, [side], seconds=300)
    files = {"a": text("left", "1", "2", "side", "right")}
    made.commit(files, [left, right], seconds=400)
    assert times(made, files) == {"a": [200, 500, 500, 50, 300]}


def test_a_limit_leaves_older_lines_unknown(made: Made) -> None:
    """What is known then is right, and that it is not all is said, and how far it goes."""
    commit = made.commit({"a": text("0")}, seconds=0)
    for number in range(1, 6):
        files = {"a": text(*map(str, range(number + 1)))}
        commit = made.commit(files, [commit], seconds=number)
    walk = Blame(made.path, {"a": False}, budget_seconds=60.0, max_commits=2)
    written = walk.run()
    assert line_times.at_head(files["a"], written["a"].spans) == [None, None, None, None, 4, 5]
    assert (walk.complete, walk.reached, walk.commits) == (False, 4, 2)
    walk = Blame(made.path, {"a": False}, budget_seconds=0.0)
    walk.run()
    assert (walk.complete, walk.reached) == (False, None)


def test_what_is_known_of_a_commit_is_not_looked_for_again(made: Made) -> None:
    """The walk ends there for the files that are known, and goes on for the others."""
    first = made.commit({"a": text("1"), "b": text("1")}, seconds=100)
    second = made.commit({"a": text("1", "2"), "b": text("1", "2")}, [first], seconds=200)
    files = {"a": text("1", "2", "3"), "b": text("1", "2", "3")}
    made.commit(files, [second], seconds=300)
    walk = Blame(made.path, {"a": True}, second, budget_seconds=60.0)
    assert line_times.at_head(files["a"], walk.run()["a"].spans) == [None, None, 300]
    assert (walk.complete, walk.commits) == (True, 2)
    written = Blame(made.path, {"a": True, "b": False}, second, budget_seconds=60.0).run()
    assert line_times.at_head(files["a"], written["a"].spans) == [None, None, 300]
    assert line_times.at_head(files["b"], written["b"].spans) == [100, 200, 300]


def test_the_end_of_a_shallow_clone_makes_no_line_new(made: Made) -> None:
    """What the last commit holds may be older than it."""
    first = made.commit({"a": text("1")}, seconds=100)
    second = made.commit({"a": text("1", "2")}, [first], seconds=200)
    files = {"a": text("1", "2", "3")}
    made.commit(files, [second], seconds=300)
    (made.path / "objects" / first[:2] / first[2:]).unlink()
    assert times(made, files) == {"a": [None, None, 300]}


def test_a_version_that_cannot_be_read_makes_no_line_new(made: Made) -> None:
    """Missing, or too large: of that file nothing older is known, of the others all is."""
    first = made.commit({"a": text("1"), "b": text("1")}, seconds=100)
    second = made.commit({"a": b"x" * 2_000_000, "b": text("1")}, [first], seconds=200)
    files = {"a": text("1", "2"), "b": text("1", "2")}
    made.commit(files, [second], seconds=300)
    assert times(made, files) == {"a": [None, None], "b": [100, 300]}


def test_a_file_that_is_compared_too_often_is_let_go(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its newest lines are known."""
    monkeypatch.setattr(blame, "MAX_DIFFS", 2)
    commit = made.commit({"a": text("0")}, seconds=0)
    for number in range(1, 5):
        files = {"a": text(*map(str, range(number + 1)))}
        commit = made.commit(files, [commit], seconds=number)
    assert times(made, files) == {"a": [None, None, None, 3, 4]}


def test_a_tree_of_endless_files_ends(made: Made) -> None:
    """A git bomb, in HEAD and in the commit before: the walk is given up, and says so."""
    tree = made.repo[made.commit({"f": b""}).encode()].tree
    for _ in range(10):
        made.repo.object_store.add_object(folder := _folder(tree))
        tree = folder.id
    bomb = made.commit_of(tree, seconds=100)
    assert Blame(made.path, {"a": False}, budget_seconds=0.3).run() == {}
    made.commit({"a": text("1")}, [bomb], seconds=200)
    walk = Blame(made.path, {"a": False}, budget_seconds=1.0)
    assert walk.run()["a"].spans == []
    assert not walk.complete


def test_a_merge_of_a_thousand_branches_ends(made: Made) -> None:
    """Each with files of its own: what would have to be compared is bounded."""
    base = made.commit({"a": text("1")}, seconds=100)
    sides = [made.commit({"a": text("1"), f"f{n}": text("x")}, [base], seconds=200 + n) for n in range(100)]
    files = {"a": text("1", "2")}
    made.commit(files, [*sides, *sides * 9], seconds=900)
    assert times(made, files) == {"a": [100, 900]}


def _folder(tree: bytes):
    from dulwich.objects import Tree

    folder = Tree()
    for number in range(10):
        folder.add(b"d%d" % number, 0o40000, tree)
    return folder


def order(line: int) -> tuple[int, int]:
    """Any order that all versions keep, but not that in which lines were written."""
    return line * 7919 % 1_000, line


@st.composite
def histories(draw) -> list[tuple[list[int], list[int]]]:
    """Commits as (lines, parents): each line is one number that occurs once, written by one commit."""
    commits: list[tuple[list[int], list[int]]] = [(sorted(range(draw(st.integers(0, 6))), key=order), [])]
    fresh = 100
    for _ in range(draw(st.integers(1, 7))):
        parents = draw(st.lists(st.sampled_from(range(len(commits))), min_size=1, max_size=2, unique=True))
        held = set().union(*(commits[parent][0] for parent in parents))
        lines = [line for line in sorted(held) if draw(st.integers(0, 5))]
        for _ in range(draw(st.integers(0, 3))):
            fresh += 1
            lines.append(fresh)
        commits.append((sorted(lines, key=order), parents))
    return commits


@given(histories())
@settings(max_examples=40)
def test_in_any_history_every_line_has_the_time_of_its_commit(tmp_path_factory, commits) -> None:
    """Lines that occur once, on any graph of branches and merges."""
    made = Made(tmp_path_factory.mktemp("history") / "repo")
    ids: list[str] = []
    born: dict[int, int] = {}
    for number, (lines, parents) in enumerate(commits):
        for line in lines:
            born.setdefault(line, number)
        files = {"a": text("top", *map(str, lines))}
        ids.append(made.commit(files, [ids[parent] for parent in parents], seconds=number))
    assert times(made, files) == {"a": [0, *(born[line] for line in commits[-1][0])]}
