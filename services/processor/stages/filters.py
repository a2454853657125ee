"""Code worth keeping, or the reason why not: the limits of services/processor/thresholds.py, one by one."""

import re

from services.processor import thresholds
from services.processor.reasons import Reason
from services.processor.stages.figures import Figures
from services.processor.stages.languages import ALL
from services.processor.thresholds import LIMITS, Limit
from services.processor.values import Code, Rejection

# Names that tools write: lock files, protocol compilers, bundlers (after github-linguist's generated.rb)
GENERATED_NAMES = frozenset(
    {
        "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "composer.lock",
        "Cargo.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "Gemfile.lock", "go.sum", "flake.lock",
    }
)  # fmt: skip
GENERATED_SUFFIXES = (
    "_pb2.py", "_pb2_grpc.py", "_pb2.pyi", ".pb.go", ".pb.gw.go", ".pb.cc", ".pb.h", ".pb.ts", ".g.dart",
    ".designer.cs", ".Designer.cs", ".g.cs", "_generated.go", ".generated.ts", ".map",
)  # fmt: skip
MINIFIED_SUFFIXES = (".min.js", ".min.mjs", ".min.css", ".bundle.js", "-min.js")

# StarCoder2's phrases, and the two that generators themselves agreed on
GENERATED_PHRASES = re.compile(
    r"auto[- ]?generated|automatically generated|generated automatically|"
    r"this (?:file|code) (?:is|was|has been) generated|@generated|do not edit"
)
# (figure, least, most, limit) of each that a language has
LIMITS_OF = {
    language: [
        (limit.figure, limit.least, limit.most, limit) for limit in LIMITS if language in limit.languages
    ]
    for language in ALL
}


def refuse_by_name(path: str) -> Rejection | None:
    name = path.rpartition("/")[2]
    if name in GENERATED_NAMES or name.endswith(GENERATED_SUFFIXES):
        return Rejection(Reason.GENERATED, f"name {name[-60:]}")
    if name.endswith(MINIFIED_SUFFIXES):
        return Rejection(Reason.MINIFIED, f"name {name[-60:]}")
    return None


def refuse(code: Code) -> Rejection | None:
    """The first limit that this code passes, or None when it may stay."""
    if refused := _generated(code):
        return refused
    figures = code.figures
    for figure, least, most, limit in LIMITS_OF[code.language]:
        if not least <= getattr(figures, figure) <= most and _applies(limit, figures):
            return _passed(limit, figures, code.language)
    return None


def _generated(code: Code) -> Rejection | None:
    head = "\n".join([line[:500] for line in code.lines[: thresholds.GENERATED_WITHIN]]).lower()
    if ("generated" in head or "do not edit" in head) and (found := GENERATED_PHRASES.search(head)):
        return Rejection(Reason.GENERATED, f"says {found[0]!r}")
    return None


def _applies(limit: Limit, figures: Figures) -> bool:
    return figures.characters >= limit.from_characters and figures.written >= limit.from_lines


def _passed(limit: Limit, figures: Figures, language: str) -> Rejection:
    value = getattr(figures, limit.figure)
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    bound = f"at least {limit.least:,}" if value < limit.least else f"at most {limit.most:,}"
    return Rejection(limit.reason, f"{limit.figure.replace('_', ' ')} {shown}, {bound} in {language}")
