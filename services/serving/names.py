"""What clients ask for: TRACK, TRACK-ROLE of a team, and either with @round-0003 behind it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Name:
    """One adapter of a track: of which role, and of which release."""

    role: str | None  # None: of an adapter alone, which has none
    release: str | None  # None: whichever `current` names

    def of(self, track: str) -> str:
        """As it is asked for."""
        return asked_as(track, self.role) + ("" if self.release is None else f"@{self.release}")


def asked_as(track: str, role: str | None) -> str:
    """The name that follows `current`."""
    return track if role is None else f"{track}-{role}"


def parse(track: str, asked: str) -> Name | None:
    """None: it is no name of this track."""
    head, at, release = asked.partition("@")
    if bool(at) != bool(release):
        return None
    if head == track:
        return Name(None, release or None)
    role = head.removeprefix(f"{track}-")
    return None if role in (head, "") else Name(role, release or None)
