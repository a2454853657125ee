"""Who is in a team: each agent's role, what it is told, and who gives the answer. Pure, without torch."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.core.errors import ConfigurationError

ROLE = re.compile(r"[a-z][a-z0-9_]*")
OF_PEFT = "lora_"  # PEFT finds weights by it: no adapter may be called like a part of it
RESERVED = frozenset({"base", "critic", "default"})  # other folders and names beside the roles'


@dataclass(frozen=True)
class Profile:
    """One agent."""

    role: str  # an identifier: the name of its adapter, and of its folder
    prompt: str  # what it is told before every task
    with_answer: bool  # whether it writes the program that is judged


def check(profiles: Sequence[Profile]) -> None:
    """Raises ConfigurationError unless there is an agent, roles are unique and only the last one answers."""
    if not profiles:
        raise ConfigurationError("profiles: there is none: expected one agent at least")
    for number, profile in enumerate(profiles):
        if not ROLE.fullmatch(profile.role) or profile.role in RESERVED or profile.role in OF_PEFT:
            raise ConfigurationError(
                f"profiles: role {profile.role!r} of agent {number}: expected small letters, digits and `_`,"
                f" a letter first, and none of {', '.join(sorted(RESERVED))}"
            )
        if not profile.prompt.strip():
            raise ConfigurationError(f"profiles: the prompt of {profile.role} is empty: say what it is to do")
    _check_unique([profile.role for profile in profiles])
    answering = [profile.role for profile in profiles if profile.with_answer]
    if answering != [profiles[-1].role]:
        raise ConfigurationError(
            f"profiles: with_answer is true for {answering or 'none'}: expected it for the last agent alone,"
            f" {profiles[-1].role}, whose program is judged"
        )


def _check_unique(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"profiles: role {twice[0]!r} is there twice: every agent has its own")
