"""docs/reference/settings.md from `.env.example` and Settings: `python -m services.core.reference` writes it.

What a setting means stands in `.env.example`, where people change it; what it may be stands in the
fields of Settings, which refuse the rest. The page has both.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from services.core.settings import NAMES, PROJECT, RECIPE_OVERRIDES, Settings

EXAMPLE = PROJECT / ".env.example"
PAGE = PROJECT / "docs" / "reference" / "settings.md"
SECTION = re.compile(r"# --- (?P<title>.+?)(?:: (?P<page>docs/\S+\.md))? ---")
ASSIGNMENT = re.compile(r"#?(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)")
LIMITS = {"ge": "≥ {}", "gt": "> {}", "le": "≤ {}", "lt": "< {}"}
TYPES = {  # part of an annotation → words
    "SecretStr": "secret", "bool": "true or false", "int": "whole number", "float": "number",
    "tuple": "list between commas", "Path": "path",
}  # fmt: skip
CHOICE = re.compile(r"\^\((?P<choices>[A-Za-z|]+)\)\$")
SHOWN_AS_EXAMPLES = ("COMPOSE_FILE", "COMPOSE_PROFILES")  # whose line in the file is not the default
OPENING = """\
<!-- Written by `python -m services.core.reference`: edit .env.example and settings.py there instead. -->

# Settings

Settings are environment variables. Docker Compose reads them from `.env`, which `make env` makes of
`.env.example`; so does `ratchet`, under what the shell says. They are read once, when a service starts: start
it again after a change. An empty value counts as not set. A name that is almost a setting, and a value that
cannot be, stop the start with an error that names them ([what people meet](../how-to/troubleshooting.md)).

*Compose* in the second column marks what only Docker Compose reads. The default is the service's; `ratchet`
on a machine of your own starts smaller: `RECIPE=demo`, `MIN_NEW_FILES=100`, `CHECK_INTERVAL=5`,
`RESCAN_INTERVAL=15`.
"""


@dataclass(frozen=True)
class Row:
    """One setting as `.env.example` has it."""

    name: str
    default: str  # as written there; empty: none
    meaning: str  # empty: that of the row above


@dataclass(frozen=True)
class Section:
    title: str
    page: str | None  # a page of docs/, relative to the project
    rows: tuple[Row, ...]


def sections(example: str) -> list[Section]:
    """The sections of an env file in the form of `.env.example`, with their settings in order."""
    found: list[Section] = []
    rows: list[Row] = []
    words: list[str] = []
    for line in example.splitlines():
        if heading := SECTION.fullmatch(line):
            rows = []
            found.append(Section(heading["title"], heading["page"], ()))
        elif setting := ASSIGNMENT.fullmatch(line):
            rows.append(Row(setting["name"], setting["value"], " ".join(words)))
            found[-1] = Section(found[-1].title, found[-1].page, tuple(rows))
        words = [*words, line.removeprefix("#").strip()] if _is_prose(line) else []
    return found


def _is_prose(line: str) -> bool:
    return line.startswith("# ") and not SECTION.fullmatch(line)


def page(example: str) -> str:
    """The whole page, in Markdown."""
    return "".join([OPENING, *(part for section in sections(example) for part in _section(section))])


def _section(section: Section) -> Iterator[str]:
    yield f"\n## {section.title}\n"
    if section.page:
        yield f"\n[How](../{section.page.removeprefix('docs/')}).\n"
    yield "\n| setting | value | default | meaning |\n|---|---|---|---|\n"
    for row in section.rows:
        meaning = _escaped(row.meaning) or "as above"
        yield f"| `{row.name}` | {_value(row.name)} | {_default(row)} | {meaning} |\n"


def _value(name: str) -> str:
    if name not in NAMES:
        return "*Compose*"
    field = Settings.model_fields[NAMES[name]]
    return ", ".join([_type(field), *_limits(field)])


def _limits(field: FieldInfo) -> Iterator[str]:
    for constraint in field.metadata:
        for key, template in LIMITS.items():
            if (limit := getattr(constraint, key, None)) is not None:
                yield template.format(limit)


def _type(field: FieldInfo) -> str:
    """What a value is, in words; a pattern of nothing but choices is these choices."""
    for constraint in field.metadata:
        if pattern := CHOICE.fullmatch(getattr(constraint, "pattern", None) or ""):
            return ", ".join(f"`{choice}`" for choice in pattern["choices"].split("|"))
    annotation = str(field.annotation)
    return next((words for kind, words in TYPES.items() if kind in annotation), "text")


def _default(row: Row) -> str:
    if row.default and row.name not in SHOWN_AS_EXAMPLES:
        return f"`{row.default}`"
    return "the recipe's" if NAMES.get(row.name) in RECIPE_OVERRIDES else "–"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def main() -> None:
    PAGE.write_text(page(EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
