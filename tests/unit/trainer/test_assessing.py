"""How losses become the gate's evidence."""

import pytest

from services.core.models import Subject
from services.trainer import gate
from services.trainer.assessing import Assessment, judge
from services.trainer.evaluate import ContentLoss
from services.trainer.packing import Row
from services.trainer.recipes.recipe import Recipe
from services.trainer.rows import Rows, lacking
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource

RECIPE = Recipe(name="track", base_model="./model", general_suite=None)


def contents(count: int, clusters: int) -> list[SampleSource]:
    """So many, spread evenly over the clusters."""
    return [SampleSource(n, b"", "python", "", cluster_id=n % clusters) for n in range(count)]


def verdict(count: int, clusters: int) -> gate.Verdict:
    """Of a candidate that is a twentieth better, give or take a hundredth; contents repeat after ten."""
    before = [ContentLoss(n, 100.0, 50, 200, 20) for n in range(count)]
    after = [ContentLoss(n, 94.0 + n % 10 % 3, 50, 200, 20) for n in range(count)]
    assessments = {Subject.BASE: Assessment(before), Subject.CANDIDATE: Assessment(after)}
    return judge(RECIPE, assessments, contents(count, clusters), gate.History())


def rows(count: int, clusters: int) -> Rows:
    row = Row(tuple(Sample(n, (1, 2), 0, 1, 2, 1) for n in range(count)))
    return Rows([row], [row], [row], contents(count, clusters))


def test_near_duplicates_are_one_observation() -> None:
    """Twice as many contents of as many clusters are no more evidence."""
    alone, copied, others = verdict(10, 10), verdict(20, 10), verdict(20, 20)
    assert copied.held_out_files == 20
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))
    assert others.low > copied.low


def test_a_few_clusters_of_many_contents_refuse() -> None:
    assert "20 held-out files of only 4 independent groups" in verdict(20, clusters=4).reason


@pytest.mark.parametrize(
    ("count", "clusters", "why"),
    [(4, 4, "4 held-out files are too few"), (20, 4, "only 4 independent groups"), (20, 5, None)],
)
def test_too_few_clusters_are_known_before_anything_is_trained(
    count: int, clusters: int, why: str | None
) -> None:
    found = lacking(rows(count, clusters))
    assert (found is None) if why is None else (why in str(found))
