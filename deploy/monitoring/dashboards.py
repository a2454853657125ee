"""Grafana's dashboards, from a table of panels: `python -m deploy.monitoring.dashboards` writes them anew.

The JSON below grafana/dashboards is what Grafana reads; it is made here because a panel of 40 lines of JSON
differs from its neighbour in three words. Why no library: docs/decisions/0031-monitoring.md
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent / "grafana" / "dashboards"
DATASOURCE = {"type": "prometheus", "uid": "prometheus"}  # as in grafana/provisioning/datasources
COLUMNS = 24  # of Grafana's grid
SCHEMA = 41  # of the JSON; an older one is migrated when it is loaded

Kind = Literal["timeseries", "stat", "bargauge"]
Query = tuple[str, str]  # PromQL, and the legend with {{labels}}
Json = dict[str, Any]

WELL = [
    {
        "type": "value",
        "options": {"0": {"text": "ill", "color": "red"}, "1": {"text": "well", "color": "green"}},
    }
]


@dataclass(frozen=True)
class Panel:
    """One panel: what it asks, and how it shows the answers."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 8  # of 24
    height: int = 7  # of 30 px each
    text: str = ""
    steps: Sequence[tuple[float | None, str]] = ((None, "blue"),)  # from which figure on which colour
    mappings: Sequence[Json] = ()
    stacked: bool = False
    labels_only: bool = False  # show the name of the series, not its figure
    maximum: float | None = None

    @property
    def is_instant(self) -> bool:
        return self.kind != "timeseries"

    def as_json(self, number: int, x: int, y: int) -> Json:
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.text,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(index, query) for index, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
        }

    def _target(self, index: int, query: Query) -> Json:
        expression, legend = query
        return {
            "refId": chr(ord("A") + index),
            "datasource": DATASOURCE,
            "expr": expression,
            "legendFormat": legend or "__auto",
            "instant": self.is_instant,
            "range": not self.is_instant,
            "format": "time_series",
        }

    def _defaults(self) -> Json:
        thresholds = [{"value": value, "color": colour} for value, colour in self.steps]
        found: Json = {
            "unit": self.unit,
            "mappings": list(self.mappings),
            "thresholds": {"mode": "absolute", "steps": thresholds},
        }
        if self.kind == "timeseries":
            found["custom"] = {
                "drawStyle": "line",
                "lineWidth": 2,
                "fillOpacity": 20 if self.stacked else 0,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.stacked else "none"},
            }
        else:
            found["color"] = {"mode": "thresholds"}
        if self.maximum is not None:
            found |= {"min": 0, "max": self.maximum}
        return found

    def _options(self) -> Json:
        reduced = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        match self.kind:
            case "timeseries":
                return {
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                    "tooltip": {"mode": "multi", "sort": "desc"},
                }
            case "stat":
                shown = "name" if self.labels_only else "auto"
                return {
                    "reduceOptions": reduced,
                    "textMode": shown,
                    "colorMode": "background_solid" if self.mappings else "value",
                    "graphMode": "none",
                }
            case "bargauge":
                return {"reduceOptions": reduced, "orientation": "horizontal", "displayMode": "basic"}


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    panels: Sequence[Panel]
    text: str
    hours: int = 24  # shown

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"

    def as_json(self) -> Json:
        return {
            "uid": f"ratchet-{self.name}",
            "title": f"Ratchet: {self.title}",
            "description": self.text,
            "tags": ["ratchet"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,  # one crosshair for all panels
            "refresh": "30s",
            "time": {"from": f"now-{self.hours}h", "to": "now"},
            "timezone": "browser",
            "links": [
                {
                    "type": "dashboards",
                    "tags": ["ratchet"],
                    "title": "Ratchet",
                    "asDropdown": False,
                    "includeVars": True,
                    "keepTime": True,
                }
            ],
            "templating": {"list": [TRACKS]},
            "panels": list(self._placed()),
        }

    def text_of_file(self) -> str:
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"

    def _placed(self) -> Iterator[Json]:
        """From left to right; a panel that does not fit begins a new line below the tallest."""
        x = y = tallest = 0
        for number, panel in enumerate(self.panels, start=1):
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            yield panel.as_json(number, x, y)
            x, tallest = x + panel.width, max(tallest, panel.height)


TRACKS = {
    "type": "query",
    "name": "track",
    "label": "Track",
    "datasource": DATASOURCE,
    "query": {"query": "label_values(ratchet_rounds_total, track)", "refId": "tracks"},
    "refresh": 2,  # when the time range changes
    "sort": 1,
    "multi": True,
    "includeAll": True,
    "allValue": ".*",
    "current": {"text": ["All"], "value": ["$__all"]},
}


def main() -> None:
    from deploy.monitoring.panels import DASHBOARDS

    for dashboard in DASHBOARDS:
        dashboard.path.write_text(dashboard.text_of_file(), encoding="utf-8")


if __name__ == "__main__":
    main()
