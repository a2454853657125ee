"""Judge on a Ray cluster, store here: the hosts of the cluster look at chunks, this process writes the rows.

Ray Data maps the very functions that a processor calls (look.FirstLook) over the chunks that wait in the
database. What comes back goes through the processor's own pipeline, which asks for the chunk and finds
the answers ready. A host that is lost, or a run broken off, leaves its chunks waiting.
"""

import socket
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from services.cli.corpus.remote import Root, look_in
from services.core.db import Database
from services.core.errors import ConfigurationError, RatchetError
from services.core.settings import PROJECT
from services.processor import claims
from services.processor.claims import Claim
from services.processor.look import Looked
from services.processor.pipeline import Pipeline
from services.processor.progress import Progress
from services.processor.rules import Rules
from services.processor.values import Draft, Parsed

VERSION = "2.60.0"  # requirements/ray.in
WINDOW_BYTES = 256_000_000  # of chunks on their way at once; names for a million files, or archives' members
PATIENCE = 10.0  # seconds a cluster has to answer
MOST_WAITING = 2_048  # chunks of a source: large windows, since each starts its workers anew


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a host found out about a chunk."""

    looks: list[Looked]
    parsed: list[tuple[bytes, Parsed]]  # by the address of the draft


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Answer).decode


class ChunkJudge:
    """On a host of the cluster: what Ray Data maps over the chunks. Has a judge process of its own."""

    def __init__(self, root: Root, rules: Rules, benchmarks: dict[str, bytes]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ratchet-benchmarks-")
        for name, data in benchmarks.items():
            path = Path(self._folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self._look = look_in(root, replace(rules, benchmarks=Path(self._folder.name)))

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        claim = claims.unpack(**row)
        looks = self._look.look(claim)
        drafts = distinct(looks)
        parsed = self._look.parse([(draft.language, draft.text) for draft in drafts])
        answers = [(draft.sha256, each) for draft, each in zip(drafts, parsed, strict=True)]
        return {"claim_id": claim.id, "answer": _encode(Answer(list(looks), answers))}


def distinct(looks: Sequence[Looked]) -> list[Draft]:
    """Each text once."""
    drafts = (looked.judgement.draft for looked in looks)
    return list({draft.sha256: draft for draft in drafts if draft is not None}.values())


class Answered:
    """A Looker that knows one chunk's answers already."""

    def __init__(self) -> None:
        self._looks: list[Looked] = []
        self._parsed: dict[tuple[str, str], Parsed] = {}

    def expect(self, answer: Answer) -> None:
        self._looks = answer.looks
        by_address = dict(answer.parsed)
        self._parsed = {
            (draft.language, draft.text): by_address[draft.sha256] for draft in distinct(answer.looks)
        }

    def look(self, claim: Claim) -> Sequence[Looked]:  # noqa: ARG002 (the only chunk expected)
        return self._looks

    def parse(self, texts: Sequence[tuple[str, str]]) -> list[Parsed]:
        return [self._parsed[text] for text in texts]

    def close(self) -> None:
        """Nothing was opened."""


class Cluster:
    """A Ray cluster that sees the same sources as this host, under the same paths."""

    def __init__(self, address: str) -> None:
        """Raises ConfigurationError when Ray is not installed or no cluster answers there."""
        try:
            import ray
            import ray.data
        except ImportError as exc:
            raise ConfigurationError(
                f'--ray needs Ray: `pip install "ray[data]=={VERSION}"` here and on every host of the cluster'
            ) from exc
        self._ray = ray
        try:
            _knock(address)
            if not ray.is_initialized():
                code = {"py_modules": [str(PROJECT / "services")]}  # the hosts judge by this very code
                ray.init(address=address, runtime_env=code, log_to_driver=False, logging_level="WARNING")
        except (OSError, ValueError, RuntimeError) as exc:
            raise ConfigurationError(f"--ray {address}: no cluster can be used there: {exc}") from exc
        ray.data.DataContext.get_current().enable_progress_bars = False

    @property
    def cores(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def work_off(
        self, database: Database, root: Root, rules: Rules, progress: Progress, stop: Callable[[], bool]
    ) -> bool:
        """Judge what waits there and store it here; false when nothing waits. Raises RatchetError."""
        with database.transaction() as transaction:
            rows = [
                {**row._asdict(), "entries": bytes(row.entries)}
                for row in transaction.all("waiting_claims", most_bytes=WINDOW_BYTES)
            ]
        if not rows:
            return False
        answered = Answered()
        pipeline = Pipeline(database, Path(), rules, looker=answered)
        try:
            for answer in self._judged(rows, root, rules):
                answered.expect(_decode(answer["answer"]))
                if (outcome := pipeline.take_one(int(answer["claim_id"]))) is not None:
                    progress.note(outcome)
                if stop():
                    break
        except self._ray.exceptions.RayError as exc:
            raise RatchetError(
                f"the Ray cluster failed, what is left waits to be taken up again: {exc}"
            ) from exc
        return True

    def _judged(self, rows: list[dict[str, Any]], root: Root, rules: Rules) -> Any:
        chunks = self._ray.data.from_items(rows, override_num_blocks=len(rows))
        judges = min(self.cores, len(rows))
        looked = chunks.map(
            ChunkJudge,
            fn_constructor_args=(root, rules, _benchmarks(rules)),
            compute=self._ray.data.ActorPoolStrategy(size=judges),
            num_cpus=1,
        )
        return looked.iter_rows()


def _knock(address: str) -> None:
    """Raises OSError when nobody listens at HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), PATIENCE).close()


def _benchmarks(rules: Rules) -> dict[str, bytes]:
    """The benchmark files, which the hosts need not have."""
    if rules.benchmarks is None or not rules.benchmarks.is_dir():
        return {}
    files = (path for path in rules.benchmarks.rglob("*") if path.is_file())
    return {str(path.relative_to(rules.benchmarks)): path.read_bytes() for path in files}
