"""`ratchet promote|reject|rollback|pin|unpin`: the moves of a champion by hand, each with its row."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from services.cli.asking import connection
from services.cli.asking.person import user
from services.cli.environment import Environment
from services.cli.printing.inert import inert
from services.core.models import Json
from services.trainer.promotions.champions import Champions, Moved
from services.trainer.promotions.line import By, Kind
from services.trainer.recipes import files as recipe_files

WORDS = {
    Kind.PROMOTED: "is the champion now",
    Kind.ROLLED_BACK: "is the champion again",
    Kind.REJECTED: "can never be the champion again",
    Kind.PINNED: "stays the champion whatever rounds bring: `ratchet unpin` ends it",
    Kind.UNPINNED: "stays the champion until a round is better",
}
BY_HAND = "by hand"


def promote(environment: Environment, track: str | None, name: str, reason: str | None) -> Json:
    return _move(environment, track, reason, name, lambda champions, by: champions.promote(name, by))


def reject(environment: Environment, track: str | None, name: str, reason: str | None) -> Json:
    return _move(environment, track, reason, name, lambda champions, by: champions.reject(name, by))


def rollback(environment: Environment, track: str | None, to: str | None, reason: str | None) -> Json:
    return _move(environment, track, reason, to, lambda champions, by: champions.roll_back(by, to))


def pin(environment: Environment, track: str | None, name: str | None, reason: str | None) -> Json:
    return _move(environment, track, reason, name, lambda champions, by: champions.pin(by, name))


def unpin(environment: Environment, track: str | None, reason: str | None) -> Json:
    return _move(environment, track, reason, None, lambda champions, by: champions.unpin(by))


def show(answer: Json, *, as_json: bool) -> None:
    """Print what the move came to."""
    print(json.dumps(answer) if as_json else "\n".join(lines(answer)))


def lines(answer: Json) -> list[str]:
    """A line for each thing that happened."""
    champion = answer["champion"] or "the base model"
    said = []
    for kind in map(Kind, answer["kinds"]):
        who = answer["adapter"] if kind is Kind.REJECTED else champion
        said.append(f"{answer['track']}: {inert(who)} {WORDS[kind]}")
    said += [
        f"{inert(name)} is damaged, and can never be the champion again: {inert(champion)} is now"
        for name in answer["damaged"]
    ]
    if answer["closed_round"] is not None:
        said.append(
            f"round {answer['closed_round']} was under way and is closed: it continued from another champion;"
            " what it trained on waits for the next"
        )
    if Kind.ROLLED_BACK in answer["kinds"]:
        said.append(f"`current` moved after {answer['seconds']:.2f} s; the next round continues from there")
    return said


def _move(
    environment: Environment,
    track: str | None,
    reason: str | None,
    adapter: str | None,
    work: Callable[[Champions, By], Moved],
) -> Json:
    """The move, done, and the files of the champion it led to read through.

    Nothing is moved when it raises: PromotionError, PublishError, ConfigurationError.
    """
    settings = environment.settings
    track = track or recipe_files.load(settings.recipe, settings.recipe_overrides).name
    by = By(user(), reason or BY_HAND)
    with connection.opened(environment, "ratchet promotions") as database:
        champions = Champions(database, track, settings.adapters_dir / track)
        began = time.perf_counter()
        moved = work(champions, by)
        seconds = time.perf_counter() - began
        damaged = []
        if moved.before != moved.champion:
            while (rejected := champions.examine(by)) is not None:
                damaged.append(rejected.before)
                moved = replace(moved, champion=rejected.champion)
            champions.settle_trained()
    return {
        "track": track,
        "adapter": adapter or moved.champion,
        **asdict(moved),
        "actor": by.actor,
        "reason": by.reason,
        "seconds": seconds,
        "damaged": damaged,
    }
