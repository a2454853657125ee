"""Is a long-lived track ever judged by what it was trained on? The history of a real repository, replayed.

    .venv/bin/python bench/time_forward.py REPOSITORY [--rounds 4] [--from 0.6]

The processor reads the repository as it was at so many commits, evenly spaced over the last part of its main
line, and at each of them the ledger opens a round, which is closed as promoted without any training. What
must hold is looked for in the database, apart from the code that chooses: lines judged as later were first
written after everything that was trained on until then had changed last; the anchors of the first round
are judged in every one as long as their code is there; no cluster is trained on in one round and judged in
another; no unit is judged that was trained on. Ends with one line of JSON, whose `faults` counts what does
not hold.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from services.cli.stack.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db  # noqa: E402
from services.core.models import ContentRole, RoundState  # noqa: E402
from services.processor.judging import Judge  # noqa: E402
from services.processor.pipeline import Pipeline  # noqa: E402
from services.processor.progress import Progress  # noqa: E402
from services.processor.rules import Rules  # noqa: E402
from services.processor.scan import SourceScan  # noqa: E402
from services.processor.sources import source  # noqa: E402
from services.trainer.ledger import Ledger  # noqa: E402
from services.trainer.recipes.recipe import Recipe  # noqa: E402
from services.trainer.samples.source import SampleSource, Spans  # noqa: E402
from services.trainer.selection import held_out  # noqa: E402

RECIPE = Recipe(name="time-forward", base_model="./model")
THRESHOLD = 0  # every content that the filters keep: the score is of no interest here
MOST = 100_000  # contents a round may take
TRAINED_ON = (ContentRole.TRAIN, ContentRole.REPLAY)
BRANCH = "refs/heads/replayed"
FACTS = """
    SELECT id AS content_id, live, coalesce(m.merged_into, c.cluster_id) AS cluster_id,
           (SELECT extract(epoch FROM max(changed_at))::bigint FROM files
            WHERE content_id = c.id AND retired_at IS NULL) AS changed_at,
           (SELECT line_times FROM files
            WHERE lines_of = c.id AND content_id = c.id AND retired_at IS NULL LIMIT 1) AS line_times
    FROM contents c LEFT JOIN cluster_merges m ON m.cluster_id = c.cluster_id
    WHERE id = ANY (%(ids)s)
"""
COPIED = """
    SELECT DISTINCT j.content_id, j.start_byte, j.end_byte
    FROM units j JOIN units t USING (fingerprint)
    WHERE j.content_id = ANY (%(judged)s) AND t.content_id = ANY (%(trained)s)
"""


@dataclass(frozen=True)
class Seen:
    """One round. Times are days of UTC, with hours where a day is too coarse to compare by."""

    number: int
    commit: str
    at: str
    kind: str
    through: str | None  # nothing trained on until then changed later
    trained: int  # contents, by this round for the first time
    anchors: int
    later: int  # contents judged by lines first written after `through`
    later_lines: int
    oldest_line: str | None  # of those that are judged as later
    leaked: int  # contents left out, since all of theirs is trained on elsewhere
    faults: tuple[str, ...]


class Track:
    """A track over one repository, and all that its rounds have trained on and judged so far."""

    def __init__(self, database: db.Database, ingest: Path, judge: Judge) -> None:
        self._database = database
        self._ingest = ingest
        self._pipeline = Pipeline(database, ingest, Rules(None), judge)
        self._ledger = Ledger(database, RECIPE.name)
        lease = self._ledger.take(RECIPE, "a replay")
        assert lease is not None
        self._lease = lease
        self._trained: set[int] = set()
        self._judged: set[int] = set()
        self._anchors: set[int] | None = None
        self._newest_trained = 0

    def scan(self) -> None:
        """Read the source as it is now, in this process."""
        (found,) = source.find(self._ingest)
        progress = Progress()

        def work() -> bool:
            outcome = self._pipeline.take_one()
            if outcome is not None:
                progress.note(outcome)
            return outcome is not None

        SourceScan(self._database, found, Rules(None), progress, work=work, stop=lambda: False).run()

    def round(self, commit: str, at: str) -> Seen:
        """Open a round, look at it, promote it."""
        opened = self._ledger.open_or_resume(self._lease, RECIPE, THRESHOLD, MOST)
        assert opened is not None
        assert opened.held_out is not None
        snapshot = self._ledger.snapshot(opened.round_id)
        self._ledger.close(
            self._lease, opened, state=RoundState.PROMOTED, training={}, verdict={"reason": "a replay"},
            losses={}, manifest={},
        )  # fmt: skip
        new = {each.content_id for role in TRAINED_ON for each in snapshot[role]}
        judged = snapshot[ContentRole.HELD_OUT]
        self._trained |= new
        self._judged |= {each.content_id for each in judged}
        facts = self._facts(self._trained | self._judged | self._anchor_ids())
        changed = [facts[content_id].changed_at for content_id in new]
        self._newest_trained = max([self._newest_trained, *(each for each in changed if each is not None)])
        later = [each for each in judged if each.content_id not in self._anchor_ids()]
        lines = list(_times(later, facts, opened.held_out.kind))
        return Seen(
            opened.number,
            commit[:10],
            at,
            opened.held_out.kind,
            _day(opened.held_out.through),
            len(new),
            opened.held_out.anchors,
            opened.held_out.later,
            len(lines),
            _day(min(lines, default=None)),
            opened.held_out.leaked,
            tuple(self._faults(judged, lines, facts, opened.held_out.leaked)),
        )

    def _faults(
        self, judged: Sequence[SampleSource], lines: Sequence[int], facts: Any, leaked: int
    ) -> Iterator[str]:
        """What does not hold, in words."""
        if lines and min(lines) <= self._newest_trained:
            yield f"a line of {_day(min(lines))} is judged as later than {_day(self._newest_trained)}"
        clusters = [
            {facts[content_id].cluster_id for content_id in ids} for ids in (self._trained, self._judged)
        ]
        if both := clusters[0] & clusters[1]:
            yield f"clusters {sorted(both)[:5]} are trained on and judged"
        anchors = self._anchor_ids()
        self._anchors = anchors if self._anchors is None else self._anchors
        if anchors != self._anchors:
            yield "the anchors are others"
        missing = {each for each in anchors if facts[each].live} - {each.content_id for each in judged}
        if len(missing) > leaked:
            yield f"anchors {sorted(missing)[:5]} are not judged"
        spans = {each.content_id: each.judged for each in judged}
        with self._database.transaction() as tx:
            ids = {"judged": list(spans), "trained": list(self._trained)}
            copied = [row for row in _rows(tx, COPIED, **ids) if _touches(spans[row.content_id], row)]
        if copied:
            yield f"{len(copied)} units are judged that were trained on, as in content {copied[0].content_id}"

    def _anchor_ids(self) -> set[int]:
        with self._database.transaction() as tx:
            return {row.content_id for row in _rows(tx, "SELECT content_id FROM anchors")}

    def _facts(self, ids: set[int]) -> dict[int, Any]:
        with self._database.transaction() as tx:
            return {row.content_id: row for row in _rows(tx, FACTS, ids=list(ids))}


def replay(repository: Path, database: db.Database, folder: Path, rounds: int, start: float) -> list[Seen]:
    """A round at each of so many commits of the repository's main line, the first at the share `start`."""
    bare = folder / "ingest" / "replayed"
    bare.parent.mkdir()
    _git("clone", "--quiet", "--bare", "--single-branch", str(repository), str(bare))
    line = _git("rev-list", "--first-parent", "--reverse", "HEAD", at=bare).split()
    _git("symbolic-ref", "HEAD", BRANCH, at=bare)
    shares = [start + (1 - start) * number / (rounds - 1) for number in range(rounds)]
    with closing(Judge(None)) as judge:
        track = Track(database, bare.parent, judge)
        seen = []
        for share in shares:
            commit = line[round(share * (len(line) - 1))]
            _git("update-ref", BRANCH, commit, at=bare)
            track.scan()
            at = _git("show", "--no-patch", "--format=%cs", commit, at=bare).strip()
            seen.append(track.round(commit, at))
            print(seen[-1], file=sys.stderr, flush=True)
    return seen


def _times(contents: Sequence[SampleSource], facts: Any, kind: str) -> Iterator[int]:
    """When each line was first written that is judged as a later one: in the middle of its bytes' span."""
    for content in contents if kind == "time" else ():
        for first, last, seconds in facts[content.content_id].line_times or ():
            for line in range(first, last + 1):
                (span,) = held_out.later_lines(content.text, [(line, line, 1)], 0) or ((0, 0),)
                if any(start <= span[0] < end for start, end in content.judged or ()):
                    yield seconds


def _touches(judged: Spans | None, unit: Any) -> bool:
    return judged is None or any(start < unit.end_byte and unit.start_byte < end for start, end in judged)


def _rows(tx: db.Transaction, query: str, **parameters: Any) -> list[Any]:
    cursor = tx._cursor  # noqa: SLF001  the bench's own queries are in no file
    cursor.execute(query, parameters)
    return list(cursor.fetchall())


def _day(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _git(*arguments: str, at: Path | None = None) -> str:
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=at, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path, help="a git repository with its whole history")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--from", dest="start", type=float, default=0.6, help="share of commits at round 1")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ratchet-time-forward-") as name:
        folder = Path(name)
        postgres = EmbeddedPostgres(folder / "home", {"fsync": "off", "full_page_writes": "off"})
        try:
            target = postgres.start()
            db.migrate(target)
            with closing(db.Database(target, application="replay")) as database:
                seen = replay(asked.repository.resolve(), database, folder, asked.rounds, asked.start)
        finally:
            postgres.stop()
    faults = sum(len(each.faults) for each in seen)
    print(json.dumps({"rounds": [asdict(each) for each in seen], "faults": faults}))


if __name__ == "__main__":
    main()
