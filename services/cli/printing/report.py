"""The end of a round as a person wants it: better or not, by how much, why, and where the adapter is."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from services.cli.printing.figures import RATE
from services.core.models import Json, RoundState

USE = """\
from peft import AutoPeftModelForCausalLM; from transformers import AutoTokenizer
model = AutoPeftModelForCausalLM.from_pretrained("{path}{role}")
tokenizer = AutoTokenizer.from_pretrained("{path}")"""


@dataclass(frozen=True)
class Outcome:
    """A closed round. Bits per byte are held-out ones; improvements are relative, 0.03 is 3 % fewer bits.

    Of a team pass rates stand for bits per byte, and an improvement of 0.03 is 3 points.
    """

    track: str
    number: int
    state: str
    reason: str
    base: float | None = None
    champion: float | None = None
    candidate: float | None = None
    against: str = "base"
    improvement: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None  # of each end of the interval
    held_out_files: int | None = None
    held_out_bytes: int | None = None
    adapter: str | None = None  # the track's current adapter, a directory
    metric: str | None = None  # rate: of a team; base, champion and candidate are pass rates then
    held_out_tasks: int | None = None
    answers: str | None = None  # the role of a team that writes the program

    @property
    def promoted(self) -> bool:
        return self.state == RoundState.PROMOTED

    @property
    def before(self) -> float | None:
        """Bits per byte of what the candidate had to beat."""
        return self.champion if self.against == "champion" else self.base

    def as_json(self) -> Json:
        return asdict(self) | {"promoted": self.promoted}


def ended(snapshot: Json, seen: set[int], adapters: Path) -> list[Json]:
    """The snapshot's closed rounds not in `seen`, oldest first; they are in it afterwards.

    A promoted one has ended when `current` has come to the champion, a moment after its row. That may be
    another adapter by then, or none, where the next round, the canary or a person moved it.
    """
    champions = {track["name"]: (track["champion"] or {}).get("directory") for track in snapshot["tracks"]}
    closed = [row for row in snapshot["rounds"] if row["closed_at"] and row["id"] not in seen]
    found = [
        row
        for row in closed
        if row["state"] != RoundState.PROMOTED
        or _current(adapters / row["track"]) == champions.get(row["track"])
    ]
    seen.update(row["id"] for row in found)
    return sorted(found, key=lambda row: int(row["id"]))


def _current(track_dir: Path) -> str | None:
    try:
        return (track_dir / "current").readlink().name
    except OSError:
        return None


def outcome(closed: Json, adapters: Path) -> Outcome:
    """From a closed round of the snapshot; `adapters` is ADAPTERS_DIR."""
    verdict = closed["verdict"] or {}
    is_team = verdict.get("metric") == RATE
    held_out = verdict.get("pass_rates" if is_team else "bits_per_byte") or {}
    current = adapters / closed["track"] / "current"
    figures = ("improvement", "low", "high", "level", "held_out_files", "held_out_bytes", "held_out_tasks")
    return Outcome(
        track=closed["track"],
        number=closed["number"],
        state=closed["state"],
        reason=verdict.get("reason") or "no reason was recorded",
        base=held_out.get("base"),
        champion=held_out.get("champion"),
        candidate=held_out.get("candidate"),
        against=verdict.get("against") or "base",
        adapter=str(current) if current.exists() else None,
        metric=verdict.get("metric"),
        answers=_answering(current),
        **{name: verdict.get(name) for name in figures},
    )


def table(result: Outcome) -> Table:
    """Before and after in figures, and the reason in words."""
    grid = Table(
        title=f"Round {result.number} of {result.track}: {result.state}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE,
        show_header=False,
        pad_edge=False,
    )
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    if result.candidate is not None:
        subjects = [
            ("base model", result.base),
            ("champion", result.champion),
            ("candidate", result.candidate),
        ]
        for label, figure in subjects:
            if figure is not None:
                grid.add_row(label, _measured(result, figure))
    if result.improvement is not None:
        grid.add_row("improvement", _improvement(result))
    grid.add_row("why", Text(result.reason))
    grid.add_row("adapter", Text(result.adapter or "none yet: the base model stands"))
    return grid


def how_to_use(result: Outcome) -> str | None:
    """Python that loads the adapter, of a team its answering role's; None when there is none."""
    if result.adapter is None:
        return None
    role = f"/{result.answers}" if result.answers else ""
    return USE.format(path=result.adapter, role=role)


def _measured(result: Outcome, figure: float) -> str:
    if result.metric == RATE:
        return f"{100 * figure:.1f} % of the held-out tasks solved"
    return f"{figure:.4f} bits per byte on held-out code"


def _answering(current: Path) -> str | None:
    """The last of a team's roles; None for a single adapter."""
    try:
        profiles = json.loads((current / "profiles.json").read_text(encoding="utf-8"))
        return str(profiles[-1]["role"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _improvement(result: Outcome) -> str:
    if result.metric == RATE:
        return _points(result)
    text = f"{_percent(result.improvement)} fewer bits than the {result.against}"
    if result.low is not None and result.high is not None:
        sure = 95 if result.level is None else 100 * (1 - 2 * result.level)
        text += f" ({sure:.4g} % interval: {_percent(result.low)} to {_percent(result.high)})"
    if result.held_out_files is not None:
        text += f", {result.held_out_files:,} files"
    if result.held_out_bytes is not None:
        text += f", {result.held_out_bytes / 1000:,.0f} kB"
    return text


def _points(result: Outcome) -> str:
    points = 100 * (result.improvement or 0.0)
    text = f"{abs(points):.1f} points {'fewer' if points < 0 else 'more'} than the {result.against}"
    if not points:
        text = f"none: as many as the {result.against}"
    if result.low is not None and result.high is not None:
        sure = 95 if result.level is None else 100 * (1 - 2 * result.level)
        text += f" ({sure:.4g} % interval: {100 * result.low:.1f} to {100 * result.high:.1f})"
    return text if not result.held_out_tasks else f"{text}, {result.held_out_tasks:,} tasks"


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{100 * share:.2f} %"
