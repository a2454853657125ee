"""docs/reference/cli.md names every command and option there is, each with an example."""

import re

import pytest
import typer
from typer.main import get_command

from services.cli.main import app
from services.core.settings import PROJECT

COMMANDS = get_command(app).commands
PAGE = (PROJECT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
PARAMETERS = {  # command → its parameters, of a group those of all its commands
    name: [
        parameter for one in (command, *getattr(command, "commands", {}).values()) for parameter in one.params
    ]
    for name, command in COMMANDS.items()
}
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_command_has_a_section_and_no_other_has() -> None:
    assert SECTIONS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_shows_its_command_with_every_option(name: str) -> None:
    """In a code block: an option that nobody shows is one that nobody finds."""
    examples = "\n".join(re.findall(r"^```\n(.*?)^```", SECTIONS[name], re.MULTILINE | re.DOTALL))
    assert re.search(rf"^ratchet {name}\b", examples, re.MULTILINE)
    for parameter in PARAMETERS[name]:
        if isinstance(parameter, typer.core.TyperOption) and parameter.name != "help":
            assert any(option in examples for option in parameter.opts), parameter.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_shows_no_option_that_there_is_not(name: str) -> None:
    known = {
        option for parameter in PARAMETERS[name] for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "--debug"}
    assert set(re.findall(r"(?<!\S)--[a-z-]+", SECTIONS[name])) <= known
