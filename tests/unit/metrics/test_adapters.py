"""What the pages of adapters make of rows: lanes of a tree, marks of moves, two suites item by item."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.pages import comparison, lineage
from services.metrics.pages.lineage import Move, drawn, standing
from services.trainer.promotions.line import Kind, Line, Published
from services.trainer.promotions.line import Move as RecordedMove


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int, int | None]]:
    """Adapters 1…n, each after its parent or from the base model; the newest first."""
    size = draw(st.integers(1, 30))
    return [
        (each, draw(st.none() | st.integers(1, each - 1)) if each > 1 else None)
        for each in range(size, 0, -1)
    ]


@given(trees())
def test_every_lane_leads_from_a_child_to_its_parent(parents: list[tuple[int, int | None]]) -> None:
    """Followed down from an adapter, its lane meets nothing before its parent, and ends there."""
    most, lineage.MOST_LANES = lineage.MOST_LANES, 100
    try:
        rows = drawn([*parents, (lineage.BASE, None)])
    finally:
        lineage.MOST_LANES = most
    places = {row.adapter_id: at for at, row in enumerate(rows)}
    for adapter, parent in parents:
        at, end = places[adapter], places[parent or lineage.BASE]
        lane = rows[at].lane
        assert all(lane in row.through and row.lane != lane for row in rows[at + 1 : end])
        assert lane in rows[end].from_above
    assert sum(len(row.from_above) for row in rows) == len(parents)


@given(trees())
def test_a_tree_is_no_wider_than_is_said(parents: list[tuple[int, int | None]]) -> None:
    for row in drawn(parents):
        assert max(row.lane, *row.through, *row.from_above, 0) < row.lanes <= lineage.MOST_LANES


def test_a_chain_is_one_line() -> None:
    assert [(row.lane, row.through, row.lanes) for row in drawn([(3, 2), (2, 1), (1, None)])] == [
        (0, (), 1)
    ] * 3


MOVES = st.lists(
    st.tuples(st.sampled_from([*Kind]), st.integers(1, 4)) | st.tuples(st.just(Kind.ROLLED_BACK), st.none()),
    max_size=20,
)


@given(MOVES)
def test_the_champion_is_the_one_that_the_trainer_reads(moves: list[tuple[Kind, int | None]]) -> None:
    """The same moves, read by the page and by services/trainer/promotions/line.py."""
    line = Line(
        tuple(Published(each, f"round-{each:04}") for each in range(1, 5)),
        tuple(RecordedMove(kind, adapter) for kind, adapter in moves),
    )
    found = standing([Move(str(kind), adapter) for kind, adapter in moves])
    assert found.champion == line.champions()[-1]
    assert found.pinned == (line.pin is not None)
    marked = [adapter for adapter, marks in found.marks.items() if "champion" in marks]
    assert marked == [each for each in [found.champion] if each is not None]


def test_marks_tell_what_became_of_an_adapter() -> None:
    moves = [("promoted", 1), ("promoted", 2), ("rolled_back", 1), ("rejected", 2), ("pinned", 1)]
    assert standing([Move(*each) for each in moves]).marks == {
        1: ("champion", "pinned"),
        2: ("rolled back", "rejected"),
    }


def item(name: str, a: float, b: float, metric: str = "pass@1", suite: str = "humaneval") -> SimpleNamespace:
    return SimpleNamespace(suite=suite, metric=metric, item=f"key {name}", name=name, a=a, b=b, weight=1.0)


def test_items_that_one_solves_and_the_other_does_not() -> None:
    (suite,) = comparison.suites(
        [item("one", 1, 0), item("two", 1, 1), item("three", 0, 1), item("four", 0, 0)]
    )
    assert ([each.name for each in suite.only_a], [each.name for each in suite.only_b]) == (
        ["one"],
        ["three"],
    )
    assert (suite.items, suite.same) == (4, 2)


def test_of_a_loss_less_is_better() -> None:
    (suite,) = comparison.suites([item("one", 2.0, 1.0, "nats"), item("two", 2.0, 2.5, "nats")])
    assert ([each.name for each in suite.only_a], [each.name for each in suite.only_b]) == (["two"], ["one"])


def test_how_alike_is_left_out_where_something_is_exact() -> None:
    rows = [item("one", 1, 0, metric, "completion") for metric in ("edit_similarity", "exact_match")]
    assert [suite.metric for suite in comparison.suites(rows)] == ["exact_match"]


def test_teams_are_compared_by_the_tasks_that_both_were_judged_by() -> None:
    rows = [
        item("one", 1.0, 0.5, suite="tasks"), item("two", 0.0, 0.75, suite="tasks"),
        item("three", 0.5, 0.5, suite="tasks"), item("elsewhere", 1.0, 0.0),
    ]  # fmt: skip
    found = comparison.tasks(rows)
    assert found is not None
    assert (found.tasks, found.a, found.b) == (3, 0.5, (0.5 + 0.75 + 0.5) / 3)
    assert (found.a_better, found.b_better) == (1, 1)
    assert comparison.tasks(rows[3:]) is None


def test_some_of_several_samples_is_not_solving() -> None:
    """Then both shares are shown."""
    (suite,) = comparison.suites([item("one", 1.0, 0.5), item("two", 0.0, 1.0)])
    assert not suite.is_rate


def report(suite: str, version: str, **figures: float) -> SimpleNamespace:
    return SimpleNamespace(subject="candidate", suite=suite, version=version, figures=figures)


def test_figures_of_two_versions_do_not_compare() -> None:
    """They stand beside each other, and neither is called better."""
    found = comparison.figures([report("he", "v1", rate=0.5)], [report("he", "v2", rate=0.6)])
    assert [(each.comparable, each.better) for each in found] == [(False, None)]


def test_a_figure_says_who_is_better() -> None:
    one = report("he", "v", bits_per_byte=0.6, rate=0.5)
    two = report("he", "v", bits_per_byte=0.7, rate=0.6)
    assert {each.name: each.better for each in comparison.figures([one], [two])} == {
        "bits_per_byte": "a",
        "rate": "b",
    }


def test_answers_stand_beside_each_other() -> None:
    (suite,) = comparison.suites([item("one", 1, 0)])
    rows = [
        SimpleNamespace(round_id=number, suite="humaneval", item="key one", metric="pass@1", written=text,
                        answer=None, results={result: 1})
        for number, text, result in ((1, "good", "passed"), (2, "bad", "wrong_answer"))
    ]  # fmt: skip
    told = comparison.answers(suite.shown, rows, 1, 2)["humaneval", "key one"]
    assert (told.a, told.b, told.results) == ("good", "bad", ("passed 1", "wrong answer 1"))
