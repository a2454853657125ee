"""What was measured of an adapter beside its verdict, in words: parity, and planted secrets. Pure."""

from services.cli.printing.inert import inert
from services.core.models import Json


def parity(told: Json | None) -> str | None:
    """`parity` of a row of adapters; None where it was never measured."""
    legs = (told or {}).get("legs")
    if not legs:
        return None
    return "parity " + ", ".join(f"{inert(leg['way'])} {leg['same']}/{leg['prompts']}" for leg in legs)


def planted(told: Json | None) -> str | None:
    """`planted` of a verdict; None where nothing was planted in the round."""
    if not told or not told.get("planted"):
        return None
    return f"{told['learned']} of {told['planted']} planted secrets learned, {told['extracted']} written out"
