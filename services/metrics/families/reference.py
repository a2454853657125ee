"""docs/reference/metrics.md, from the families; `python -m services.metrics.families.reference` writes it."""

from services.core.settings import PROJECT
from services.metrics.families import SECTIONS
from services.metrics.families.family import Family

PAGE = PROJECT / "docs" / "reference" / "metrics.md"

HEAD = """\
<!-- Written by `python -m services.metrics.families.reference`: edit services/metrics/families instead. -->

# Metrics

What `http://localhost:8090/metrics` tells a scraper: Prometheus' text format or OpenMetrics, whichever its
`Accept` header names (`?format=prometheus` for everybody else). Dashboards and alerts:
[monitoring](../how-to/monitoring.md).

```sh
curl -s 'http://localhost:8090/metrics?format=prometheus' | grep '^ratchet_rounds_total'
```

All come from the database, a second or two old, so that they do not begin anew when a process is restarted;
only `ratchet_http_request_duration_seconds` counts what this process has answered since it started. Counters
never fall: the rows that they count are never deleted, by `ratchet forget` neither. No label names a file, a
round or an adapter. Where a figure is not known its series is absent; while the database does not answer, all
but those marked with * are.

A histogram `NAME` is `NAME_bucket`, `NAME_sum` and `NAME_count` in a query.
"""


TAIL = """\
## As JSON

Everybody who names neither format gets one JSON document: `curl -s localhost:8090/metrics`, a browser,
`Accept: application/json` or `?format=json`. It is that of `/api/v1/state`, and never holds NaN.

| key | what |
|---|---|
| `state` | `last_trained_id`, `total_training_runs`, `total_samples_trained`, `last_training_time` |
| `training_metrics` | of the last finished round: `train_loss`, `eval_loss`, `improvement`, … |
| `config` | the recipe of the track in use; `model` is its base model |
| `ingest`, `tracks`, `rounds`, `running_round`, `curve` | what the dashboard shows |
| `happenings`, `suites`, `stalls` | the last decisions, what the suites said, who is ill |
| `services` | every heartbeat, the newest first |
| `operations` | what an operator watches beside: database, events, webhooks, what was forgotten |
| `health` | as `/health` |
| `stale`, `age_seconds`, `error` | whether all this is old, how old, and why |
"""


def page() -> str:
    """The whole page, as Markdown."""
    parts = [HEAD]
    for section in SECTIONS:
        rows = "\n".join(_row(family) for family in section.families)
        parts.append(f"## {section.title}\n\n| metric | type | labels | |\n|---|---|---|---|\n{rows}\n")
    return "\n".join([*parts, TAIL])


def _row(family: Family) -> str:
    mark = "*" if family.always else ""
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.full_name}`{mark} | {family.kind} | {labels} | {family.text} |"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
