"""The front that clients talk to: OpenAI's requests, with the names that do not change."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from services.core.errors import ServingError
from services.serving.adapters import BASE
from services.serving.backend import Backend, BackendUnavailableError
from services.serving.follower import Answering, Follower

ADAPTER_HEADER = "x-ratchet-adapter"  # of every answer: TRACK@round-0003 sha256:…, or base
MOST_BYTES = 16 * 1024 * 1024  # of a request
PASSED_ON = ("/v1/completions", "/v1/chat/completions")


def create_app(follower: Follower, backend: Backend, *, follow: bool = True) -> Starlette:
    """The application; `follow`: whether it follows `current` as long as it runs."""

    async def pass_on(request: Request) -> Response:
        return await _answer(request, follower, backend)

    async def models(_request: Request) -> Response:
        cards = [{"id": name, "object": "model", "owned_by": "ratchet"} for name in follower.models()]
        return JSONResponse({"object": "list", "data": cards})

    async def health(_request: Request) -> Response:
        return JSONResponse(follower.status(), status_code=200 if follower.ready else 503)

    async def live(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with _followed(follower, backend, follow=follow):
            yield

    return Starlette(
        routes=[
            *(Route(path, pass_on, methods=["POST"]) for path in PASSED_ON),
            Route("/v1/models", models),
            Route("/health", health),
            Route("/health/ready", health),
            Route("/health/live", live),
        ],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )


@contextlib.asynccontextmanager
async def _followed(follower: Follower, backend: Backend, *, follow: bool) -> AsyncIterator[None]:
    task = asyncio.create_task(follower.run()) if follow else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await backend.close()


async def _answer(request: Request, follower: Follower, backend: Backend) -> Response:
    """The server's answer as it comes, by one adapter from its first byte to its last."""
    body = await _body(request)
    async with AsyncExitStack() as held:
        try:
            who = await held.enter_async_context(follower.answering(body.get("model") or follower.track))
            upstream = await _asked(request.url.path, body, who, follower, backend)
        except BackendUnavailableError as exc:
            raise HTTPException(503, str(exc)) from exc
        except ServingError as exc:
            raise HTTPException(404, str(exc)) from exc
        held.push_async_callback(upstream.aclose)
        keep = held.pop_all()  # until the last byte is out, or the client is gone
    return StreamingResponse(
        _bytes(upstream, keep),
        status_code=upstream.status_code,
        media_type=upstream.headers.get("content-type"),
        headers={ADAPTER_HEADER: _named(who)},
    )


async def _asked(
    path: str, body: dict[str, Any], who: Answering, follower: Follower, backend: Backend
) -> httpx.Response:
    """A server that was started again has lost the adapter: it is loaded, and asked once more."""
    sent = {**body, "model": who.model}
    upstream = await backend.ask(path, sent)
    if upstream.status_code == httpx.codes.NOT_FOUND and who.adapter is not None:
        await upstream.aclose()
        await follower.load_again(who.adapter)
        upstream = await backend.ask(path, sent)
    return upstream


async def _bytes(upstream: httpx.Response, keep: AsyncExitStack) -> AsyncIterator[bytes]:
    async with keep:
        async for chunk in upstream.aiter_bytes():
            yield chunk


async def _body(request: Request) -> dict[str, Any]:
    """Raises HTTPException for what is no JSON object, or too large."""
    raw = bytearray()
    try:
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > MOST_BYTES:
                raise HTTPException(413, f"a request has {MOST_BYTES} bytes at most")
        body = json.loads(raw)
    except (ClientDisconnect, ValueError) as exc:
        raise HTTPException(400, f"the request is not JSON: {exc}") from exc
    if not isinstance(body, dict) or not isinstance(body.get("model") or "", str):
        raise HTTPException(400, "the request must be a JSON object, and its model a name")
    return body


async def _refused(_request: Request, exc: Exception) -> Response:
    """An error as OpenAI's clients read it."""
    assert isinstance(exc, HTTPException)
    kind = {404: "NotFoundError", 503: "ServiceUnavailableError"}.get(exc.status_code, "BadRequestError")
    error = {"message": exc.detail, "type": kind, "param": None, "code": exc.status_code}
    return JSONResponse({"error": error}, status_code=exc.status_code)


def _named(who: Answering) -> str:
    return BASE if who.adapter is None else f"{who.model} sha256:{who.adapter.digest}"
