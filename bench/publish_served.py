"""Serving's part of bench/publish.py: parity of an adapter, and how soon a promoted one answers.

A real `ratchet serve` and OpenAI's client, over sockets. quick: a random model of two layers; otherwise
SmolLM2-135M. The adapters are drawn, not trained: what a promotion takes does not depend on what is in them.
"""

import json
import statistics
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from services.core.settings import PROJECT
from services.trainer import publish
from tests import served, tiny_model
from tests.served import ROUNDS, Serving

PROMOTIONS = 6  # one after the other
USERS = 2  # who ask all the time meanwhile
ANSWER_TOKENS = 16  # of theirs
LONGEST = 120.0  # seconds that a promotion may take to be served


def measure(quick: bool) -> dict[str, float]:
    """`promotion_to_served_s`, the median, with `promotion_to_served_max_s`; `parity_exact_match`.

    A promotion is committed and `current` then moved in the same call; the clock starts before the move and
    stops at the first token of the new adapter, asked again and again by the track's name while others ask
    too. parity_exact_match: the share of greedy answers that are the same in every way of running it.
    """
    with TemporaryDirectory(prefix="ratchet-served-") as folder:
        home = Path(folder)
        recipe_file, cache, std = _quick(home) if quick else _full(home)
        track_dir = served.publish_adapters(home, recipe_file, cache, std)
        variables = served.environment(home, recipe_file, cache)
        with served.serving(track_dir, variables) as running:
            seconds, answers = _promotions(running)
            found = json.loads(served.parity(variables, ROUNDS[0], "--served", running.url, "--json"))
    legs = found["legs"]
    return {
        "parity_exact_match": sum(leg["same"] for leg in legs) / sum(leg["prompts"] for leg in legs),
        **{f"parity_{leg['way']}": leg["same"] / leg["prompts"] for leg in legs},
        "promotion_to_served_s": round(statistics.median(seconds), 3),
        "promotion_to_served_max_s": round(max(seconds), 3),
        "answers_meanwhile": answers,
    }


def _quick(home: Path) -> tuple[Path, Path, float]:
    return tiny_model.recipe(home, tiny_model.make(home / "model")), home / "cache", 0.3


def _full(home: Path) -> tuple[Path, Path, float]:
    recipe_file = home / "demo.yaml"
    recipe_file.write_bytes((PROJECT / "recipes" / "demo.yaml").read_bytes())
    return recipe_file, PROJECT / ".ratchet" / "cache", 0.02


def _promotions(running: Serving) -> tuple[list[float], int]:
    """Seconds of each, and how many answers others got meanwhile. None of them may fail."""
    stop = threading.Event()
    answers: list[tuple[str, str]] = []
    failures: list[Exception] = []

    def user() -> None:
        while not stop.is_set() and not failures:
            try:
                answers.append(running.ask(running.track, ANSWER_TOKENS))
            except Exception as exc:  # whatever it is, it must be told
                failures.append(exc)

    users = [threading.Thread(target=user) for _ in range(USERS)]
    for each in users:
        each.start()
    try:
        seconds = [_promoted(running, ROUNDS[number % 3]) for number in range(1, PROMOTIONS + 1)]
    finally:
        stop.set()
        for each in users:
            each.join()
    if failures:
        raise failures[0]
    return seconds, len(answers)


def _promoted(running: Serving, name: str) -> float:
    expected = f"{running.track}@{name}"
    client = running.client()
    began = time.perf_counter()
    publish.point_current(running.track_dir, name)
    while time.perf_counter() - began < LONGEST:
        stream = client.completions.create(
            model=running.track, prompt=served.PROMPT, max_tokens=1, temperature=0, stream=True
        )
        first = next(iter(stream))
        if first.model == expected:
            return time.perf_counter() - began
        stream.close()
    raise TimeoutError(f"{expected} does not answer {LONGEST:.0f} s after its promotion")


if __name__ == "__main__":
    print(json.dumps(measure("--quick" in sys.argv)))
