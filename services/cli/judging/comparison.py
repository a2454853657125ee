"""A comparison on a terminal: figures, wins, and answers beside one another."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.judging.differences import pieces
from services.cli.printing.inert import inert, inert_lines
from services.core.models import Json

NAMES = {
    "pass@1": "pass@1", "exact_match": "exact match", "edit_similarity": "edit similarity",
    "keywords": "keywords", "nats": "nats a byte",
}  # fmt: skip
COLUMN = 38  # characters an answer takes at least beside another
OPENED, CLOSED = "⟦", "⟧"  # around what differs where there are no colours


def show(console: Console, found: Json, *, most: int) -> None:
    console.print(Text(heading(found)))
    console.print(table(found))
    for line in (*verdicts(found), *agreements(found)):
        console.print(Text(line))
    for item in found["items"][:most]:
        console.print()
        console.print(
            Text(inert(f"{item['name']}{', ' + item['kind'] if item['kind'] else ''}"), style="bold")
        )
        console.print(side_by_side(found, item, console))
    if most and len(found["items"]) > most:
        console.print(Text(f"\n{len(found['items']) - most} more answers: --show, --html or --json"))


def heading(found: Json) -> str:
    asked = found["asked"]
    files = f", {asked['files']} files" if asked["what"] == "completions" else ""
    count = f"{len(found['items'])} {'items' if asked['what'] == 'suite' else asked['what']}"
    return inert(f"{count} of {asked['of']}{files}, on {found['device']}")


def table(found: Json) -> Table:
    """A row a model."""
    metrics = [name for name in NAMES if any(name in each["figures"] for each in found["subjects"])]
    made = Table(box=None, header_style="")
    made.add_column("")
    for name in [*(NAMES[metric] for metric in metrics), "bits per byte", "tokens/s", "seconds"]:
        made.add_column(name, justify="right")
    for each in found["subjects"]:
        made.add_row(Text(inert(each["name"])), *cells(each, metrics))
    return made


def cells(subject: Json, metrics: Sequence[str]) -> list[str]:
    """The figures of one model, as text."""
    shares = [share(subject["figures"].get(metric)) for metric in metrics]
    bits, speed = subject["bits_per_byte"], subject["tokens_per_second"]
    return [
        *shares,
        "–" if bits is None else f"{bits:.4f}",
        "known" if speed is None and subject["from_cache"] else "–" if speed is None else f"{speed:.1f}",
        f"{subject['seconds']:.1f}",
    ]


def share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def verdicts(found: Json) -> list[str]:
    """One line for each pair of models and metric."""
    return [inert(verdict(each, found["confidence"])) for each in found["pairs"]]


def agreements(found: Json) -> list[str]:
    """How many answers are the first model's, where there are any."""
    return [
        inert(f"{each['of']} and {each['against']}: {each['same']} of {each['answers']} answers the same")
        for each in found["agreements"]
        if each["answers"]
    ]


def verdict(pair: Json, confidence: float) -> str:
    counts = f"{pair['wins']} won, {pair['losses']} lost, {pair['ties']} even"
    scale, unit = (1, "nats") if pair["metric"] == "nats" else (100, "points")
    if pair["low"] is None:
        between = "one file says nothing of others"
    else:
        low, high = scale * pair["low"], scale * pair["high"]
        between = f"{scale * pair['mean']:+.2f} {unit} ({100 * confidence:.0f} %: {low:+.2f} to {high:+.2f})"
    name = NAMES[pair["metric"]]
    return (
        f"{pair['of']} against {pair['against']}, {name}: {counts} (sign test p {pair['p']:.3g}); {between}"
    )


def side_by_side(found: Json, item: Json, console: Console) -> Table:
    """Answers in columns where there is room, below one another otherwise."""
    names = [each["name"] for each in found["subjects"] if each["name"] in item["answers"]]
    coloured = console.is_terminal and not console.no_color
    first = item["answers"][names[0]]["text"] or ""
    columns = [("wanted", Text(inert_lines(item["wanted"])))] if item.get("wanted") else []
    for name in names:
        answer = item["answers"][name]
        marks = ", ".join(map(mark, answer["values"].items()))
        title = f"{inert(name)} ({marks})" if marks else inert(name)
        columns.append((title, highlighted(answer["text"], first, coloured=coloured)))
    if len(columns) * COLUMN <= console.width:
        made = Table(box=None, header_style="dim", expand=True)
        for title, _ in columns:
            made.add_column(title, ratio=1, overflow="fold")
        made.add_row(*(text for _, text in columns))
        return made
    made = Table(box=None, show_header=False)
    made.add_column(overflow="fold")
    for title, text in columns:
        made.add_row(Text(title, style="dim"))
        made.add_row(text)
    return made


def mark(value: tuple[str, float]) -> str:
    metric, found = value
    if metric in ("pass@1", "exact_match") and found in (0.0, 1.0):
        passed = {"pass@1": ("failed", "passed"), "exact_match": ("differs", "exact")}
        return passed[metric][int(found)]
    return f"{found:.3f} nats a byte" if metric == "nats" else f"{100 * found:.0f} %"


def highlighted(text: str | None, other: str, *, coloured: bool) -> Text:
    """What differs from the first model's answer stands out, in brackets where there are no colours."""
    if text is None:
        return Text("–")
    made = Text()
    for piece in pieces(text, other):
        shown = inert_lines(piece.text)
        if not piece.differs:
            made.append(shown)
        elif coloured:
            made.append(shown, style="reverse")
        else:
            made.append(f"{OPENED}{shown}{CLOSED}")
    return made
