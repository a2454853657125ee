"""Counters never fall: not when what they counted is forgotten, and no query there is could make them."""

import re

from prometheus_client.parser import text_string_to_metric_families

from services.core import sql
from services.core.db import Database
from services.metrics.cached import Reading
from services.metrics.collector import snapshot
from services.metrics.exposition import expose
from services.metrics.health import VitalSigns, judge
from services.trainer.forgetting import found, steps
from services.trainer.forgetting.target import find
from services.trainer.forgetting.words import Policy
from tests.metrics_history import SOURCES, fill

COUNTED = ("contents", "rounds", "promotions", "events", "deliveries", "forgettings")
SUMMED = {"contents": "bytes", "rounds": "training"}  # what is added up, and set once


def _counters(database: Database) -> dict[tuple[str, ...], float]:
    health = judge(VitalSigns(migrated=True), error=None, uptime_seconds=1)
    body, _ = expose(Reading(snapshot(database), 0.0), health, None)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        if family.type == "counter"
        for sample in family.samples
    }


def test_forgetting_a_whole_source_lets_no_counter_fall(database: Database) -> None:
    """Its texts and units go, its adapters are marked; what was stored and trained has been."""
    fill(database)
    before = _counters(database)
    with database.transaction() as transaction:
        looked = found.read(
            transaction, find(transaction, SOURCES[1].name), Policy.REFUSE, everywhere=True
        )  # fmt: skip
        number = steps.bar(transaction, looked, "mira", "left the company", {})
        adapters = {adapter.adapter_id: adapter.contents for adapter in looked.adapters}
        marked = {"adapter_ids": list(adapters), "contents": list(adapters.values())}
        transaction.execute("forget_mark", forgetting=number, **marked)
        transaction.execute("forget_withdraw", forgetting=number, adapter_ids=list(adapters))
    forgetting = database.run(lambda transaction: steps.read(transaction, number))
    steps.erase(database, forgetting)
    steps.finish(database, forgetting)
    after = _counters(database)
    assert looked.adapters
    assert len(before) > 20
    assert {name for name, value in before.items() if after.get(name, -1.0) < value} == set()
    assert after["ratchet_forgettings_total",] == before["ratchet_forgettings_total",] + 1


def test_no_query_takes_away_what_is_counted() -> None:
    """Neither a row nor, of what is added up, a figure."""
    written = "\n".join(
        [query.text for query in sql.queries().values()] + [migration.text for migration in sql.migrations()]
    )
    tables = "|".join(COUNTED)
    assert (
        re.findall(rf"(?:DELETE\s+FROM|TRUNCATE)\s+(?:ONLY\s+)?(?:{tables})\b", written, re.IGNORECASE) == []
    )
    for table, column in SUMMED.items():
        updates = re.findall(rf"UPDATE {table}\b(?:\s\w+)?\s+SET\s+([^;]*?)\s(?:WHERE|FROM)\b", written)
        changing = [update for update in updates if re.search(rf"\b{column}\s*=", update)]
        assert len(changing) == (1 if table == "rounds" else 0), changing  # close_round, of an open one
