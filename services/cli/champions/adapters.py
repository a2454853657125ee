"""`ratchet adapters`: what was published, newest first, and which of it is the champion."""

from collections.abc import Iterator, Sequence

from services.cli.asking import connection, tracks
from services.cli.environment import Environment
from services.cli.printing import measured
from services.cli.printing.figures import gain, moment
from services.cli.printing.inert import inert
from services.core.models import Json
from services.metrics.document import is_figure, strict_json


def run(environment: Environment, track: str | None, *, most: int, as_json: bool) -> None:
    """Print them. Raises ConfigurationError for a track that is none, DatabaseUnavailableError."""
    with connection.opened(environment, "ratchet adapters") as database, database.transaction() as tx:
        if track is not None:
            tracks.checked(track, tracks.known(tx))
        found = [row._asdict() for row in tx.all("cli_adapters", track=track, limit=most)]
    for row in found:
        folder = environment.settings.adapters_dir / row["track"] / row["directory"]
        row["path"] = str(folder)
        row["is_here"] = folder.is_dir()
    print(strict_json({"adapters": found}) if as_json else "\n".join(lines(found)))


def lines(adapters: Sequence[Json]) -> Iterator[str]:
    if not adapters:
        yield "no adapter yet: one is published when a round finds it better (`ratchet rounds`)"
        return
    wide = max(7, *(len(inert(f"{row['track']}/{row['directory']}")) for row in adapters))
    yield f"{'adapter':<{wide}}  {'published':<18}{'gain':>9}{'held out':>11}  {'from':<14}"
    for row in adapters:
        yield (
            f"{inert(row['track'] + '/' + row['directory']):<{wide}}  {moment(row['published_at']):<18}"
            f"{gain(row['improvement'], row['metric']):>9}{held_out(row):>11}"
            f"  {inert(row['parent'] or 'base'):<14}{state(row)}"
        ).rstrip()


def held_out(row: Json) -> str:
    """Bits per byte of held-out code, or the share of the held-out tasks that a team solves."""
    if is_figure(row["pass_rate"]):
        return f"{100 * row['pass_rate']:.1f} %"
    return f"{row['bits_per_byte']:.4f}" if is_figure(row["bits_per_byte"]) else "–"


def state(row: Json) -> str:
    """What there is to know of it beside its figures."""
    said = {
        f"a team: {inert(', '.join(row['roles'] or ()))}": bool(row["roles"]),
        "champion, pinned": row["pinned"],
        "champion": row["champion"] and not row["pinned"],
        "rejected": row["rejected"],
        "has learned what was forgotten": row["learned_what_was_forgotten"],
        "its files are not here": not row["is_here"],
    }
    figures = (measured.parity(row["parity"]), measured.planted(row["planted"]))
    return "; ".join(filter(None, [", ".join(words for words, holds in said.items() if holds), *figures]))
