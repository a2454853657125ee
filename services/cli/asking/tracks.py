"""Which track a command is about: the one that is named, the recipe's, or the only one there is."""

from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.db import Transaction
from services.core.errors import ConfigurationError
from services.trainer.recipes import files as recipe_files


def known(transaction: Transaction) -> list[str]:
    return [row.name for row in transaction.all("cli_tracks")]


def one(environment: Environment, transaction: Transaction, named: str | None) -> str:
    """The track to speak of. Raises ConfigurationError when there is none such, naming those there are."""
    names = known(transaction)
    if named is not None:
        return checked(named, names)
    settings = environment.settings
    wanted = recipe_files.load(settings.recipe, settings.recipe_overrides).name
    if wanted not in names and len(names) == 1:
        return names[0]
    return checked(wanted, names)


def checked(name: str, names: list[str]) -> str:
    if name in names:
        return name
    there = f"there is {', '.join(map(inert, names))}" if names else "there is none yet"
    raise ConfigurationError(
        f"no track is called {inert(name)!r}, {there}: one begins when a trainer first runs with its recipe"
    )
