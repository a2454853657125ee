"""Adapters that were never trained, published; and `ratchet serve` as a process that answers with them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

from services.core.settings import PROJECT
from services.trainer import publish
from services.trainer.recipes import files as recipe_files

ROUNDS = ("round-0001", "round-0002", "round-0003")
PROMPT = "def add(a, b):\n"
START_SECONDS = 240.0  # on two cores that others use too


def publish_adapters(home: Path, recipe_file: Path, cache: Path, std: float) -> Path:
    """The track's folder with three adapters whose weights were drawn; the first is the champion.

    std: of the weights that a fresh adapter has as 0; large enough that each writes something else.
    """
    import torch

    from services.trainer import canary_suite, model
    from services.trainer.engine.compute import Compute

    recipe = recipe_files.load(str(recipe_file), {})
    source = model.locate(recipe.base_model, None, cache)
    tokenizer = model.load_tokenizer(source)
    trained = model.for_training(model.load_base(recipe, source), recipe, None, home)
    compute = Compute(trained)
    track_dir = home / "adapters" / recipe.name

    def write(folder: Path) -> None:
        model.save(trained, folder, {}, home)
        tokenizer.save_pretrained(folder)

    for seed, name in enumerate(ROUNDS):
        torch.manual_seed(seed)
        with torch.no_grad():
            for weights_name, weights in trained.named_parameters():
                if "lora_B" in weights_name:
                    weights.normal_(std=std)
        compute.weights_changed()
        manifest: dict[str, Any] = {
            "kind": "adapter",
            "base_model": recipe.base_model,
            "base_revision": None,
            "recipe": recipe.model_dump(mode="json"),
            "canary": canary_suite.measure(compute, tokenizer, recipe),
            "greedy": canary_suite.greedy(trained, tokenizer),
        }
        publish.publish(track_dir, name, write, manifest)
    publish.point_current(track_dir, ROUNDS[0])
    return track_dir


def environment(home: Path, recipe_file: Path, cache: Path) -> dict[str, str]:
    """Without a database."""
    without = ("DATABASE_URL", "POSTGRES_HOST")
    return {name: value for name, value in os.environ.items() if name not in without} | {
        "RECIPE": str(recipe_file),
        "ADAPTERS_DIR": str(home / "adapters"),
        "CACHE_DIR": str(cache),
        "RATCHET_HOME": str(home / "home"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(PROJECT),
    }


@dataclass(frozen=True)
class Serving:
    """A running `ratchet serve`."""

    url: str
    track_dir: Path
    said: tuple[str, ...]  # when it started

    @property
    def track(self) -> str:
        return self.track_dir.name

    def client(self) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=120)

    def health(self) -> httpx.Response:
        return httpx.get(f"{self.url}/health", timeout=60, trust_env=False)

    def ask(self, asked: str, tokens: int = 24) -> tuple[str, str]:
        """Who answered, and what."""
        answer = self.client().completions.create(
            model=asked, prompt=PROMPT, max_tokens=tokens, temperature=0
        )
        return answer.model, answer.choices[0].text


@contextmanager
def serving(track_dir: Path, variables: dict[str, str]) -> Iterator[Serving]:
    """From the moment that the champion answers; it ends as by Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "services.cli.main", "serve", "--port", "0"],
        cwd=track_dir,
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = (process.stdout.readline(), process.stdout.readline())
        found = re.search(r"(http://\S+)/v1 ", said[0])
        assert found is not None, said
        served = Serving(found[1], track_dir, said)
        until(lambda: served.health().status_code == 200)
        yield served
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def parity(variables: dict[str, str], *arguments: str) -> str:
    """What `ratchet parity` prints."""
    command: Sequence[str] = [sys.executable, "-m", "services.cli.main", "parity", *arguments]
    return subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout


def until(holds: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
