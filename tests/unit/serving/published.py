"""Published adapters without a model, a server that loads them without looking, and who follows them."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from safetensors.numpy import save_file
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from services.serving.backend import Backend
from services.serving.follower import Follower
from services.serving.shelf import Policy
from services.trainer import publish

CONFIG = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj"], "bias": "none"}
ANYTHING = Policy(max_rank=16, without_parity=True)
WEIGHTS = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"


def two(track_dir: Path, made: Callable[[Path, str], Path]) -> Path:
    """The folder of a track with two rounds; the first is the champion. made: `make` or `make_team`."""
    for number in (1, 2):
        made(track_dir, f"round-{number:04}")
    publish.point_current(track_dir, "round-0001")
    return track_dir


def make(track_dir: Path, name: str, kind: str = "adapter", **config: Any) -> Path:
    """A published folder; `config` changes what PEFT says of it."""

    def write(folder: Path) -> None:
        _adapter(folder, config)

    manifest = {"kind": kind, "base_model": "org/model", "recipe": {"base_model": "org/model"}, "name": name}
    publish.publish(track_dir, name, write, manifest)
    return track_dir / name


def make_team(
    track_dir: Path, name: str, roles: tuple[str, ...] = ("analyzer", "coder"), **config: Any
) -> Path:
    """A published team; `config` changes what PEFT says of its last role."""
    profiles = [
        {"role": role, "prompt": f"You are the {role}.", "with_answer": role == roles[-1]} for role in roles
    ]

    def write(folder: Path) -> None:
        for role in roles:
            (folder / role).mkdir()
            _adapter(folder / role, config if role == roles[-1] else {})
        (folder / "profiles.json").write_text(json.dumps(profiles), encoding="utf-8")

    manifest = {
        "kind": "team",
        "base_model": "org/model",
        "recipe": {"base_model": "org/model"},
        "name": name,
    }
    publish.publish(track_dir, name, write, manifest)
    return track_dir / name


def _adapter(folder: Path, config: dict[str, Any]) -> None:
    """As PEFT writes it."""
    rank = config.get("r", 8)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG | config), encoding="utf-8")
    weights = {"A": np.zeros((rank, 4), np.float32), "B": np.zeros((4, rank), np.float32)}
    save_file(
        {WEIGHTS.format(side): tensor for side, tensor in weights.items()},
        folder / "adapter_model.safetensors",
    )


class Server:
    """vLLM's requests, as they answer; `refuses` holds names that it does not load."""

    def __init__(self, root: str = "org/model") -> None:
        self.root = root
        self.loaded: dict[str, str] = {}
        self.refuses: set[str] = set()
        self.refused_models: set[str] = set()  # by their whole names
        self.away = False
        self.asked: list[str] = []  # the models of completions
        routes = [
            Route("/v1/models", self._models),
            Route("/v1/load_lora_adapter", self._load, methods=["POST"]),
            Route("/v1/unload_lora_adapter", self._unload, methods=["POST"]),
            Route("/v1/completions", self._complete, methods=["POST"]),
        ]
        self._transport = httpx.ASGITransport(Starlette(routes=routes))

    def backend(self) -> Backend:
        return Backend("http://server", transport=_Away(self))

    async def handle(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("nobody listens")
        return await self._transport.handle_async_request(request)

    async def _models(self, _request: Request) -> Response:
        cards = [{"id": "base", "root": self.root}]
        cards += [{"id": name, "root": path} for name, path in self.loaded.items()]
        return JSONResponse({"object": "list", "data": cards})

    async def _load(self, request: Request) -> Response:
        body = await request.json()
        name = body["lora_name"]
        if name in self.loaded:
            return _error(400, f"The lora adapter '{name}' has already been loaded.")
        if name.partition("@")[2] in self.refuses or name in self.refused_models:
            return _error(500, "LoRA rank 64 is greater than max_lora_rank 16.")
        self.loaded[name] = body["lora_path"]
        return PlainTextResponse("Success")

    async def _unload(self, request: Request) -> Response:
        name = (await request.json())["lora_name"]
        if self.loaded.pop(name, None) is None:
            return _error(404, f"The lora adapter '{name}' cannot be found.")
        return PlainTextResponse("Success")

    async def _complete(self, request: Request) -> Response:
        model = (await request.json())["model"]
        if model != "base" and model not in self.loaded:
            return _error(404, f"The model `{model}` does not exist.")
        self.asked.append(model)
        return JSONResponse({"model": model, "choices": [{"text": model}]})


class _Away(httpx.AsyncBaseTransport):
    def __init__(self, server: Server) -> None:
        self._server = server

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._server.handle(request)


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "code": status}}, status_code=status)


def followed(
    track_dir: Path,
    test: Callable[[Follower, Server], Coroutine[Any, Any, None]],
    server: Server | None = None,
    policy: Policy = ANYTHING,
) -> None:
    """Run the test in an event loop, after a first look."""

    async def run() -> None:
        there = server or Server()
        follower = Follower(track_dir, there.backend(), policy)
        await follower.look()
        await test(follower, there)

    asyncio.run(run())


async def now(follower: Follower) -> None:
    """A look that waits for nothing."""
    follower._next_try = follower._next_check = 0.0
    await follower.look()


async def model(follower: Follower, asked: str) -> str:
    """Who answers under that name."""
    async with follower.answering(asked) as who:
        return who.model
