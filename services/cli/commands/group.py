"""The group of all commands: its help in sections, its errors in one line."""

import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from services.core.errors import RatchetError

HELP_WIDTH = 100  # columns at most; a narrower terminal gets its own


class _WithExamples:
    """Its help ends with the examples of the guide."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, each in the line that it is to be copied from."""
        from services.cli.commands import guide

        super().format_epilog(ctx, formatter)  # type: ignore[misc]  # of the typer class it stands before
        if lines := guide.examples(ctx.command_path.partition(" ")[2]):
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in lines))


class Command(_WithExamples, TyperCommand):
    """One command."""


class Group(_WithExamples, TyperGroup):
    """Commands under one name, as `ratchet recipe`."""


class Commands(TyperGroup):
    """Lists commands under the title of their section, and turns an error raised on purpose into one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit status 1 and a line on standard error for a RatchetError."""
        try:
            return super().invoke(ctx)
        except RatchetError as exc:
            if ctx.params.get("debug"):
                raise
            print(f"ratchet: {exc}", file=sys.stderr)
            raise typer.Exit(1) from exc

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        """Write a list of commands for each section, in the order in which they were added."""
        width = max(map(len, self.commands), default=0)
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            title = str(command.rich_help_panel or "Commands")  # type: ignore[attr-defined]  # typer's commands have it
            says = command.get_short_help_str(formatter.width - width - 4)
            sections.setdefault(title, []).append((name.ljust(width), says))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def add_sections(root: typer.Typer, sections: dict[str, typer.Typer]) -> None:
    """Add the commands of each part to the root, under the part's title."""
    for title, part in sections.items():
        _explain(part)
        for command in part.registered_commands:
            command.rich_help_panel = title
        for group in part.registered_groups:
            group.rich_help_panel, group.cls = title, Group
            if group.typer_instance is not None:
                _explain(group.typer_instance)
        root.add_typer(part)


def _explain(part: typer.Typer) -> None:
    for command in part.registered_commands:
        command.cls = Command
