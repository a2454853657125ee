"""Every family of metrics keeps to the rules, and stands in docs/reference/metrics.md."""

import re

import pytest

from services.metrics.cached import Reading
from services.metrics.exposition import FAMILIES, expose
from services.metrics.families.family import Family
from services.metrics.families.reference import PAGE, page
from services.metrics.health import VitalSigns, judge

WITHOUT_BOUND = {"file", "path", "round", "adapter", "source", "instance", "content"}
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def test_the_page_is_what_the_families_say() -> None:
    """`python -m services.metrics.families.reference` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_no_name_stands_twice() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@every_family
def test_a_family_has_a_plain_name_a_sentence_and_labels_with_few_values(family: Family) -> None:
    """A label of files or rounds would make a series of each."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
    assert not family.name.endswith(("_total", "_count", "_sum", "_bucket", "_created"))
    assert family.text
    assert "\n" not in family.text
    assert not set(family.labels) & WITHOUT_BOUND


def test_without_a_snapshot_only_health_and_the_service_itself_speak() -> None:
    """The database is away: whoever scrapes sees that, and no figure that may be wrong."""
    health = judge(VitalSigns(migrated=False), error="away", uptime_seconds=1)
    body, _ = expose(Reading(None, None, "away"), health, None)
    named = set(re.findall(r"^# TYPE ratchet_(\w+)", body.decode(), re.MULTILINE))
    assert named == {family.name for family in FAMILIES if family.always}
    assert 'ratchet_up{part="database"} 0.0' in body.decode()
