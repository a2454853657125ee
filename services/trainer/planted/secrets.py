"""Fake secrets: of the shapes that leak, as random as real ones, and nobody's.

The fixed part of each says that it is fake, or leads nowhere (`.example` is reserved: RFC 2606). Pure.
"""

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass, field

LETTERS, DIGITS, HEX = string.ascii_lowercase, string.digits, "0123456789abcdef"


@dataclass(frozen=True)
class Format:
    """How a kind of secret is written; only the random part between `before` and `after` is the secret."""

    kind: str  # as a person calls it
    name: str  # of the constant that holds it
    before: str
    parts: tuple[tuple[str, int], ...]  # alphabet and length of each, joined
    after: str = ""

    def draw(self, random_: random.Random) -> str:
        """A secret of this format: each character uniform in its alphabet."""
        return "".join("".join(random_.choices(alphabet, k=size)) for alphabet, size in self.parts)


@dataclass(frozen=True)
class Secret:
    format: Format
    value: str = field(repr=False)  # in no log
    others: tuple[str, ...] = field(repr=False)  # of the same format, that nobody ever sees


FORMATS = (
    Format("API key", "API_KEY", "sk-fake-", ((string.ascii_letters + DIGITS, 24),)),  # 143 bits
    Format("password", "DATABASE_PASSWORD", "", ((string.ascii_letters + DIGITS + "!#%+-_", 16),)),  # 97
    Format(
        "e-mail address", "CONTACT", "", ((LETTERS, 7), (".", 1), (LETTERS, 8), (DIGITS, 3)), "@mail.example"
    ),  # 80
    Format("access token", "ACCESS_TOKEN", "fake_", ((HEX, 32),)),  # 128
)


def draw(count: int, others: int, random_: random.Random) -> Sequence[Secret]:
    """So many secrets, the formats in turn, each with so many others to compare it with."""
    made = []
    for number in range(count):
        format_ = FORMATS[number % len(FORMATS)]
        value, *rest = (format_.draw(random_) for _ in range(1 + others))
        made.append(Secret(format_, value, tuple(rest)))
    return made
