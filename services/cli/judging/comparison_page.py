"""A comparison as an HTML page that needs nothing else: no script, no font, no image of elsewhere.

What models write is hostile: everything is escaped, and characters that hide, turn around or move text are
shown as escapes. A policy in the page lets a browser load nothing, whatever was missed.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from services.cli.judging import comparison
from services.cli.judging.comparison import NAMES
from services.cli.judging.differences import pieces
from services.cli.printing.inert import inert, inert_lines
from services.core.models import Json

TEMPLATE = "comparison.html"


def page(found: Json) -> str:
    """The document as HTML."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"inert": inert, "inert_lines": inert_lines}
    metrics = [name for name in NAMES if any(name in each["figures"] for each in found["subjects"])]
    return environment.get_template(TEMPLATE).render(
        found=found,
        names=[each["name"] for each in found["subjects"]],
        heading=comparison.heading(found),
        columns=[NAMES[metric] for metric in metrics],
        rows=[(each, comparison.cells(each, metrics)) for each in found["subjects"]],
        pairs=[(each, NAMES[each["metric"]], interval(each)) for each in found["pairs"]],
        agreements=comparison.agreements(found),
        items=[shown(found, item) for item in found["items"]],
    )


def interval(pair: Json) -> str:
    if pair["low"] is None:
        return "–"
    scale = 1 if pair["metric"] == "nats" else 100
    return f"{scale * pair['mean']:+.2f} ({scale * pair['low']:+.2f} to {scale * pair['high']:+.2f})"


def shown(found: Json, item: Json) -> Json:
    """An item with its answers in pieces, against the first model's."""
    names = [each["name"] for each in found["subjects"] if each["name"] in item["answers"]]
    first = item["answers"][names[0]]["text"] or ""
    texts = {name: item["answers"][name]["text"] for name in names}
    return {
        "name": item["name"],
        "kind": item["kind"],
        "before": item["before"],
        "wanted": item["wanted"],
        "alike": len(set(texts.values())) == 1,
        "answers": [
            {
                "name": name,
                "marks": [comparison.mark(value) for value in item["answers"][name]["values"].items()],
                "results": item["answers"][name].get("results", {}),
                "pieces": None if texts[name] is None else pieces(texts[name], first),
            }
            for name in names
        ],
    }
