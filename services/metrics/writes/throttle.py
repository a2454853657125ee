"""Wrong guesses slow down whoever makes them. No clock of its own: it is told the time."""

from collections import OrderedDict
from dataclasses import dataclass

FREE = 5  # wrong guesses before the first wait
FIRST, LONGEST = 1.0, 60.0  # seconds to wait; each further wrong guess doubles it
MEMORY = 900.0  # seconds without a wrong guess after which an address begins anew
MOST = 10_000  # addresses remembered


@dataclass
class Guesses:
    wrong: int = 0
    last: float = 0.0

    @property
    def wait(self) -> float:
        """Seconds after the last one in which there is no next."""
        return 0.0 if self.wrong < FREE else min(LONGEST, FIRST * 2.0 ** (self.wrong - FREE))


class Throttle:
    def __init__(self) -> None:
        self._by_address: OrderedDict[str, Guesses] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Seconds until this address may guess again; 0: now."""
        guesses = self._by_address.get(address)
        return 0.0 if guesses is None else max(0.0, guesses.last + guesses.wait - now)

    def wrong(self, address: str, now: float) -> None:
        guesses = self._by_address.pop(address, Guesses())
        if now - guesses.last > MEMORY:
            guesses = Guesses()
        self._by_address[address] = Guesses(guesses.wrong + 1, now)
        if len(self._by_address) > MOST:
            self._by_address.popitem(last=False)

    def right(self, address: str) -> None:
        self._by_address.pop(address, None)
