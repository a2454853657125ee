"""The HTTP side: the handlers of `transformers serve`, and the part of vLLM's API that exchanges adapters."""

import uuid
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel
from transformers.cli.serving.chat_completion import ChatCompletionHandler
from transformers.cli.serving.completion import CompletionHandler

from services.core.errors import RatchetError
from services.trainer.server.models import BASE, Known, Models, OneThread


class Sampling:
    """A temperature above 0 asks for chance; transformers' handlers leave that to the model's defaults."""

    def _build_generation_config(self, body: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        config = super()._build_generation_config(body, *arguments, **options)  # type: ignore[misc]
        if body.get("temperature"):
            config.do_sample = True
        return config


class Chats(Sampling, ChatCompletionHandler):
    """POST /v1/chat/completions."""


class Completions(Sampling, CompletionHandler):
    """POST /v1/completions."""


class Load(BaseModel):
    """What vLLM's /v1/load_lora_adapter is sent."""

    lora_name: str
    lora_path: str


class Unload(BaseModel):
    """What vLLM's /v1/unload_lora_adapter is sent."""

    lora_name: str


def create_app(models: Models, tokenizer: Any) -> FastAPI:
    """The application. Not for the open: it loads whatever folder it is told to."""
    app = FastAPI(openapi_url=None)
    state = OneThread()
    _answers(app, Known(models, tokenizer), state)
    _exchanges(app, models, state)
    app.add_exception_handler(HTTPException, _refused)
    return app


def _answers(app: FastAPI, known: Known, state: OneThread) -> None:
    """OpenAI's requests."""
    chats, completions = Chats(known, state), Completions(known, state)

    @app.post("/v1/chat/completions")
    async def chat(request: Request, body: dict[str, Any]) -> Response:
        return await chats.handle_request(body, _id(request))

    @app.post("/v1/completions")
    async def complete(request: Request, body: dict[str, Any]) -> Response:
        return await completions.handle_request(body, _id(request))

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}


def _exchanges(app: FastAPI, models: Models, state: OneThread) -> None:
    """vLLM's requests that list and exchange adapters."""

    @app.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        roots = {BASE: models.root, **{name: str(folder) for name, folder in models.folders.items()}}
        cards = [{"id": name, "object": "model", "root": root} for name, root in roots.items()]
        return {"object": "list", "data": cards}

    @app.post("/v1/load_lora_adapter")
    async def load(asked: Load) -> Response:
        if asked.lora_name in models.folders or asked.lora_name == BASE:
            raise HTTPException(400, f"The lora adapter '{asked.lora_name}' has already been loaded.")
        try:
            await state.thread.async_submit(models.load, asked.lora_name, Path(asked.lora_path))
        except RatchetError as exc:
            raise HTTPException(400, str(exc)) from exc
        return PlainTextResponse(f"Success: LoRA adapter '{asked.lora_name}' added successfully.")

    @app.post("/v1/unload_lora_adapter")
    async def unload(asked: Unload) -> Response:
        if asked.lora_name not in models.folders:
            raise HTTPException(404, f"The lora adapter '{asked.lora_name}' cannot be found.")
        await state.thread.async_submit(models.unload, asked.lora_name)
        return PlainTextResponse(f"Success: LoRA adapter '{asked.lora_name}' removed successfully.")


async def _refused(_request: Request, exc: Exception) -> Response:
    """An error as OpenAI's clients and vLLM's read it."""
    if not isinstance(exc, HTTPException):
        raise exc
    error = {"message": str(exc.detail), "type": "BadRequestError", "param": None, "code": exc.status_code}
    return JSONResponse({"error": error}, status_code=exc.status_code)


def _id(request: Request) -> str:
    return request.headers.get("x-request-id") or f"cmpl-{uuid.uuid4().hex}"
