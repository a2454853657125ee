"""A stand-in for W&B's server: what the pinned client asks when it sends runs, over a real socket.

GraphQL at /graphql, a run's curves at /files/ENTITY/PROJECT/RUN/file_stream, files by PUT to the addresses it
was given for them. What it does not know is answered with 501, and remembered.
"""

import base64
import gzip
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

OPERATION = re.compile(r"\s*(?:query|mutation) (\w+)")
STREAM = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")
TELEMETRY = "/sdk/otel/"  # how the client fares; sent to where runs are sent
HISTORY, SUMMARY = "wandb-history.jsonl", "wandb-summary.json"


@dataclass
class Run:
    """What has arrived of one."""

    said: Json  # the variables of the first UpsertBucket
    lines: dict[str, list[str]] = field(default_factory=dict)  # of each streamed file
    exit_code: int | None = None  # None: it has not said that it is over

    @property
    def config(self) -> Json:
        """Without what wandb says of itself."""
        found = json.loads(self.said.get("config") or "{}")
        return {name: each["value"] for name, each in found.items() if name != "_wandb"}

    @property
    def history(self) -> list[Json]:
        return [json.loads(line) for line in self.lines.get(HISTORY, ())]


@dataclass
class WandbServer:
    """`received`: path and body of every request, unpacked; `keys`: the API keys that came with them."""

    url: str = ""
    runs: dict[str, Run] = field(default_factory=dict)  # by id
    files: dict[str, bytes] = field(default_factory=dict)  # by name
    received: list[bytes] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator["WandbServer"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, method: str, path: str, body: bytes) -> Json | None:
        """What a request is answered with; None: this server does not know it."""
        if path.startswith(TELEMETRY):
            return {}
        if path == "/graphql":
            return self._graphql(json.loads(body))
        if method == "PUT" and path.startswith("/upload/"):
            self.files[path.removeprefix("/upload/")] = body
            return {}
        if (found := STREAM.fullmatch(path)) is not None:
            return self._stream(self.runs[found[3]], json.loads(body))
        return None

    def _stream(self, run: Run, said: Json) -> Json:
        """Lines that begin at an offset, which may have been sent before."""
        for name, chunk in (said.get("files") or {}).items():
            lines = run.lines.setdefault(name, [])
            lines[chunk["offset"] :] = chunk["content"]
        run.exit_code = said.get("exitcode", run.exit_code)
        return {}

    def _graphql(self, asked: Json) -> Json | None:
        operation = OPERATION.match(asked["query"])
        answers: dict[str, Callable[[Json], Json]] = {
            "Viewer": self._viewer,
            "ServerFeaturesQuery": lambda _: {"serverInfo": {"features": []}},
            "RunResumeStatus": self._resume_status,
            "UpsertBucket": self._upsert_bucket,
            "CreateRunFiles": self._create_run_files,
            **ARTIFACTS,
        }
        if operation is None or operation[1] not in answers:
            return None
        return {"data": answers[operation[1]](asked.get("variables") or {})}

    def _viewer(self, _: Json) -> Json:
        person = {"id": "1", "entity": "us", "username": "us", "email": "us@example.org", "admin": False}
        return {"viewer": {**person, "flags": "{}", "teams": {"edges": []}}}

    def _resume_status(self, said: Json) -> Json:
        run = self.runs.get(said["name"])
        place = {"id": "p", "name": said["project"], "entity": {"id": "e", "name": said["entity"]}}
        return {"model": {**place, "bucket": None if run is None else _bucket(said["name"], run)}}

    def _upsert_bucket(self, said: Json) -> Json:
        inserted = said["name"] not in self.runs
        run = self.runs.setdefault(said["name"], Run(said))
        project = {"id": "p", "name": said["project"], "entity": {"id": "e", "name": said["entity"]}}
        bucket = {**_bucket(said["name"], run), "description": "", "sweepName": None, "project": project}
        return {"upsertBucket": {"bucket": bucket, "inserted": inserted}}

    def _create_run_files(self, said: Json) -> Json:
        files = [{"name": name, "uploadUrl": f"{self.url}/upload/{name}"} for name in said["files"]]
        return {"createRunFiles": {"runID": said["run"], "uploadHeaders": [], "files": files}}


ARTIFACTS: dict[str, Callable[[Json], Json]] = {  # a table is one too; this server has each of them already
    "CreateArtifact": lambda said: {
        "createArtifact": {
            "artifact": {"id": "a", "state": "COMMITTED", "artifactSequence": {"latestArtifact": {"id": "a"}}}
        }
    },
    "UseArtifact": lambda _: {"useArtifact": {"artifact": {"id": "a"}}},
}


def _bucket(name: str, run: Run) -> Json:
    """A run as the client asks for it before it goes on with it."""
    lines = {kind: run.lines.get(f"wandb-{kind}.jsonl", []) for kind in ("history", "events")}
    return {
        "id": f"id-of-{name}",
        "name": name,
        "displayName": run.said.get("displayName"),
        "config": run.said.get("config") or "{}",
        "summaryMetrics": (run.lines.get(SUMMARY) or ["{}"])[-1],
        "logLineCount": len(run.lines.get("output.log", ())),
        "tags": [],
        "notes": None,
        "wandbConfig": "{}",
        **{f"{kind}LineCount": len(found) for kind, found in lines.items()},
        **{f"{kind}Tail": json.dumps(found[-1:]) for kind, found in lines.items()},
    }


def _handler(server: WandbServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing: what came is in `received`."""

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kind, _, login = self.headers.get("Authorization", "").partition(" ")
            with server.lock:
                if kind == "Basic":
                    server.keys.add(base64.b64decode(login).decode().removeprefix("api:"))
                server.received.append(f"{self.command} {self.path}\n".encode() + body)
                found = server.answer(self.command, self.path, body)
                if found is None:
                    server.unknown.append(f"{self.command} {self.path} {body[:200]!r}")
            answer = json.dumps(found or {}).encode()
            self.send_response(501 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = _take  # noqa: N815  named by http.server

    return Handler
