"""docs/reference/cli.md from the commands: `python -m services.cli.reference` writes it.

What a command is, and what its options mean, stands in services/cli/commands/*.py; prose and examples, a
section a command, stand in services/cli/commands/guide.md.
"""

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from services.cli.commands import guide
from services.cli.main import app
from services.core.settings import PROJECT

PAGE = PROJECT / "docs" / "reference" / "cli.md"
KINDS = (  # what typer says of a value → what the page says
    (re.compile(r" <(list\[)?str\]?>"), " TEXT"),
    (re.compile(r" <(int|float)( range)?>"), " NUMBER"),
    (re.compile(r"(\S+)<=x<=(\S+)(?=\])"), r"\1 to \2"),
    (re.compile(r"x>=(\S+)(?=\])"), r"\1 or more"),
)
COMMON = ("as_json", "help")  # of every command: said once
OPENING = """\
<!-- Written by `python -m services.cli.reference`: edit services/cli/commands there instead. -->

# The `ratchet` command

`ratchet COMMAND --help` says the same in short. A newcomer begins with `ratchet doctor` and `ratchet up`.

- **JSON**: every command takes `--json` and then writes one JSON document to standard output; what is for
  people goes to standard error. What goes on until Ctrl-C, `events`, `logs` and `status --watch`, writes an
  object a line.
- **Exit status**: 0 when all is well; 1 for an error, or when the answer is no (a check that found something,
  a request that was refused); 2 when the command is not written so; 130 after Ctrl-C.
- **Errors** are one line on standard error that says what to do, or a whole traceback with
  `ratchet --debug COMMAND …`.
- **Colours** only on a terminal, and not where `NO_COLOR` is set. Elsewhere everything is plain text.
- **Tab**: `ratchet --install-completion` makes bash, zsh and fish complete commands, options, and the names
  of tracks, adapters, recipes and sources.

Commands reach the database that `DATABASE_URL` or `POSTGRES_HOST` names, else the one that `ratchet up` runs
here. In Compose, run them inside a service: `docker-compose exec processor ratchet stats`.
"""


def page() -> str:
    """The whole page, in Markdown."""
    root = get_command(app)
    commands: dict[str, Any] = root.commands  # type: ignore[attr-defined]  # a typer group has them
    said = guide.sections()
    body = "\n\n".join("\n\n".join(_command(root, name, one, said)) for name, one in commands.items())
    return f"{OPENING}\n{''.join(_overview(commands))}\n{body}\n"


def _overview(commands: dict[str, Any]) -> Iterator[str]:
    """The sections of `ratchet --help`, each with links to its commands."""
    titles: dict[str, list[str]] = {}
    for name, command in commands.items():
        titles.setdefault(command.rich_help_panel, []).append(f"[`{name}`](#{name})")
    yield "| | |\n|---|---|\n"
    for title, links in titles.items():
        yield f"| {title} | {' '.join(links)} |\n"


def _command(root: Any, name: str, command: Any, said: dict[str, str]) -> Iterator[str]:
    """Heading, what it does, options, and what the guide has to say."""
    context = command.context_class(
        command, info_name=name, parent=root.context_class(root, info_name="ratchet")
    )
    yield f"## {name}"
    yield _prose(command.help)
    if not hasattr(command, "commands"):
        yield from _synopsis(command, context)
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield f"### {name} {inner_name}"
        yield _prose(inner.help)
        yield from _synopsis(inner, inner.context_class(inner, info_name=inner_name, parent=context))
    yield said[name]


def _prose(help_text: str) -> str:
    """A docstring as one paragraph."""
    return _escaped(" ".join(help_text.split()))


def _synopsis(command: Any, context: Any) -> Iterator[str]:
    """The usage line, and a table of arguments and options where there are any of its own."""
    yield f"`{command.get_usage(context).removeprefix('Usage: ')}`"
    own = [parameter for parameter in command.params if parameter.name not in COMMON]
    records = [record for parameter in own if (record := _record(parameter, context))]
    if records:
        rows = "".join(f"| `{_cell(names)}` | {_escaped(_cell(says))} |\n" for names, says in records)
        yield f"| argument or option | meaning |\n|---|---|\n{rows}".rstrip("\n")


def _record(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Names and meaning; of an argument its name says what it is."""
    record: tuple[str, str] | None = parameter.get_help_record(context)
    if record is None or parameter.param_type_name == "option":
        return record
    return record[0].partition(" <")[0], record[1]


def _cell(text: str) -> str:
    """In one line, and in words of its own."""
    line = " ".join(text.split())
    for pattern, words in KINDS:
        line = pattern.sub(words, line)
    return line.replace("|", "\\|")


def _escaped(text: str) -> str:
    """Plain text in Markdown; what stands in backquotes stays."""
    parts = text.split("`")
    return "`".join(
        part if index % 2 else part.replace("<", "&lt;").replace("*", "\\*")
        for index, part in enumerate(parts)
    )


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
