"""The server behind the front: the requests of vLLM's API that exchange adapters while it runs.

An adapter is loaded under a name of its own and never replaced under one. vLLM's `load_inplace` would change
the adapter of answers that are being written, keep cached prefixes of the old one, and (as of 0.32) read the
files again at every step. Why: docs/decisions/0025-serving.md.
"""

import json
from pathlib import Path
from typing import Any

import httpx
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from services.core.errors import ServingError

ATTEMPTS = 4  # of a request that may be made again, over about two seconds
CONNECT_SECONDS, LOAD_SECONDS = 5.0, 300.0


class BackendUnavailableError(ServingError, ConnectionError):
    """The server behind the front does not answer."""


class Backend:
    """One server, by its address. Used in one event loop."""

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url
        # A completion may take as long as it likes, and proxies of the environment are for elsewhere.
        timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        self._client = httpx.AsyncClient(
            base_url=url, timeout=timeout, limits=limits, transport=transport, trust_env=False
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def models(self) -> dict[str, str]:
        """What is loaded: name → path; of the base model the path or id it was started with.

        Raises BackendUnavailableError when it does not answer.
        """
        try:
            answer = await self._client.get("/v1/models", timeout=CONNECT_SECONDS)
            answer.raise_for_status()
            return {card["id"]: str(card.get("root") or "") for card in answer.json()["data"]}
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as exc:
            raise BackendUnavailableError(f"{self.url} does not list its models: {_said(exc)}") from exc

    async def load(self, name: str, folder: Path) -> None:
        """Have it load an adapter. Raises ServingError with its reason when it does not."""
        answer = await self._change("/v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)})
        if answer.is_success or "already been loaded" in answer.text:
            return
        raise ServingError(f"{self.url} does not load {name}: {_reason(answer)}")

    async def unload(self, name: str) -> None:
        """Have it forget an adapter; one that it does not know is forgotten."""
        answer = await self._change("/v1/unload_lora_adapter", {"lora_name": name})
        if answer.is_success or answer.status_code == httpx.codes.NOT_FOUND:
            return
        raise ServingError(f"{self.url} does not unload {name}: {_reason(answer)}")

    async def ask(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """An answer whose body is still to be read, and to be closed.

        Raises BackendUnavailableError when nobody answers.
        """
        request = self._client.build_request("POST", path, json=body)
        try:
            return await self._client.send(request, stream=True)
        except httpx.HTTPError as exc:
            raise BackendUnavailableError(f"{self.url} does not answer: {_said(exc)}") from exc

    async def _change(self, path: str, body: dict[str, Any]) -> httpx.Response:
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(httpx.TransportError),
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_exponential_jitter(multiplier=0.2, max=2.0),
                reraise=True,
            ):
                with attempt:
                    answer = await self._client.post(path, json=body, timeout=LOAD_SECONDS)
        except httpx.HTTPError as exc:
            raise BackendUnavailableError(f"{self.url} does not answer: {_said(exc)}") from exc
        return answer


def _reason(answer: httpx.Response) -> str:
    """What an answer says is wrong: vLLM's `error.message`, FastAPI's `detail`, or its text."""
    try:
        said = answer.json()
        error = said.get("error", said)
        text = error.get("message") or error.get("detail") if isinstance(error, dict) else error
        if text:
            return str(text)
    except (json.JSONDecodeError, AttributeError):
        pass
    if answer.status_code == httpx.codes.NOT_FOUND:
        return "it has no such request: is VLLM_ALLOW_RUNTIME_LORA_UPDATING=True set, and --enable-lora?"
    return f"status {answer.status_code}: {answer.text[:500]}"


def _said(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
