"""`ratchet explain PATH`: why a file has its score, or why it was refused; now, and in the database."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.cli.asking import connection
from services.cli.asking.judged import Verdict, judge_now
from services.cli.asking.locate import PathError, Place, locate
from services.cli.corpus import recorded
from services.cli.corpus.explanation import lines
from services.cli.corpus.recorded import Content, Record
from services.cli.environment import Environment
from services.cli.printing.figures import moment
from services.cli.printing.inert import inert
from services.core.errors import ConfigurationError, RatchetError
from services.core.models import Json
from services.core.reason_texts import text as reason_text
from services.metrics.document import strict_json
from services.processor.judging import Judge
from services.processor.reasons import Reason
from services.processor.rules import Rules
from services.processor.sources.paths import printable
from services.processor.stages.score import RAMPS

BY_COMPARISON = {
    Reason.NEAR_DUPLICATE.value,
    Reason.FORGOTTEN.value,
}  # reasons that the file alone does not tell


def run(environment: Environment, asked: str, *, as_json: bool) -> None:
    """Print what is to be said of the file. Raises PathError when there is and was none there."""
    rules = Rules.of(environment.settings)
    judge = Judge(rules.benchmarks, decontaminate=rules.decontaminate)
    try:
        told = explain(environment, asked, Path.cwd(), judge)
    finally:
        judge.close()
    print(strict_json(told) if as_json else "\n".join(lines(told)))


def explain(environment: Environment, asked: str, here: Path, judge: Judge) -> Json:
    """Judged now, looked up, and where the two differ. `asked` counts from the directory `here`.

    Raises PathError, RatchetError when the file's source cannot be read.
    """
    rules = Rules.of(environment.settings)
    place = locate(asked, environment.settings.ingest_dir, here)
    verdict = judge_now(place, rules, judge)
    record: Record | None = None
    near: Content | None = None
    problem: str | None = None
    if place.name is None:
        problem = "the file is in no source of the ingest folder"
    else:
        try:
            with connection.opened(environment, "ratchet explain") as database, database.transaction() as tx:
                record = recorded.look_up(tx, place.name, place.path)
                near = recorded.kept_instead(tx, verdict) if verdict is not None else None
        except ConfigurationError:
            raise
        except RatchetError as exc:
            problem = str(exc)
    if verdict is None and record is None:
        raise PathError(_nothing(place, asked, environment.settings.ingest_dir, problem))
    return {
        "source": place.name,
        "path": place.path,
        "now": None if verdict is None else now(verdict, near),
        "database": None if record is None else stored(record),
        "database_problem": problem,
        "differences": differences(verdict, near, record, rules.digest),
    }


def _nothing(place: Place, asked: str, ingest: Path, problem: str | None) -> str:
    """What to say of a path that neither is judged nor was ever recorded."""
    shown = inert(printable(asked))
    if place.source is not None and os.path.lexists(place.source.path / place.path):
        return (
            f"{shown} is passed over without a row: version control, a cache, or not what it was a moment ago"
        )
    where = f", and the database was not asked ({problem})" if problem else " nor in the database"
    return f"{shown}: no such file, neither below {ingest} nor from here{where}"


def now(verdict: Verdict, near: Content | None) -> Json:
    draft, refused = verdict.draft, verdict.refused
    reason = refused.reason.value if refused else Reason.NEAR_DUPLICATE.value if near else None
    return {
        "kept": reason is None,
        "reason": reason,
        "why": reason_text(reason),
        "detail": refused.detail if refused else None,
        "covered_by": verdict.found.path,
        "language": verdict.language,
        "size_bytes": verdict.found.size_bytes,
        "sha256": draft.sha256.hex() if draft else None,
        "bytes": draft.size_bytes if draft else None,
        "lines": draft.lines if draft else None,
        "score": draft.score.value if draft else None,
        "points": points(draft.score.points) if draft else [],
        "scorer_version": draft.score.version if draft else None,
        "redactions": [{"kind": each.kind, "line": each.line} for each in draft.redactions] if draft else [],
        "units": [unit(each) for each in verdict.units],
        "licence": draft.licence if draft else None,
        "source_licence": verdict.source_licence,
        "duplicate_of": None if near is None else brief(near),
    }


def stored(record: Record) -> Json:
    file, content = record.file, record.content
    row = content.row if content else None
    state = "retired" if file.retired_at else "refused" if file.reason else "stored"
    return {
        "state": state,
        "reason": file.reason,
        "why": reason_text(file.reason),
        "detail": file.detail,
        "covered_by": file.path,
        "language": row.language if row else file.language,
        "size_bytes": file.size_bytes,
        "sha256": row.sha256 if row else None,
        "bytes": row.bytes if row else None,
        "lines": row.lines if row else None,
        "score": row.score if row else None,
        "points": points(row.score_reasons) if row else [],
        "scorer_version": row.scorer_version if row else None,
        "percentile": content.percentile if content else None,
        "redactions": [{"kind": kind, "line": line} for kind, line in row.redactions] if row else [],
        "units": [unit(each) for each in content.units] if content else [],
        "licence": row.licence if row else None,
        "source_licence": file.source_licence,
        "duplicate_of": brief(record.duplicate_of) if record.duplicate_of else None,
        "near_duplicates": content.near_duplicates if content else None,
        "cluster": row.cluster_id if row else None,
        "contents_in_cluster": content.in_cluster if content else None,
        "also_at": [each for each in content.holders if each != f"{file.source}/{file.path}"]
        if content
        else [],
        "rounds": _rounds(content) if content else [],
        "commit": file.commit_id,
        "changed_at": file.changed_at,
        "source_commit": file.source_commit,
        "renamed_from": file.renamed_from,
        "first_seen_at": file.first_seen_at,
        "seen_at": file.seen_at,
        "retired_at": file.retired_at,
        "problem": file.problem,
    }


def _rounds(content: Content) -> list[Json] | None:
    """None: this role may not know."""
    return None if content.rounds is None else [each._asdict() for each in content.rounds]


def brief(content: Content) -> Json:
    return {"sha256": content.row.sha256, "score": content.row.score, "at": content.holders}


def points(given: Mapping[str, int]) -> list[Json]:
    """Each reason with its points and their maximum, the latter as of the scorer we have."""
    return [
        {"reason": reason, "points": value, "most": RAMPS[reason].most if reason in RAMPS else None}
        for reason, value in given.items()
    ]


def unit(each: Any) -> Json:
    names = ("kind", "name", "start_line", "end_line", "start_byte", "end_byte")
    return {name: getattr(each, name) for name in names}


def differences(
    verdict: Verdict | None, near: Content | None, record: Record | None, rules: int
) -> list[str]:
    """Where what is there now and what the database says part, in words."""
    if record is None:
        return []
    file, content = record.file, record.content
    if verdict is None:
        return [] if file.retired_at else ["the file is gone since: the next scan retires it"]
    found, told = verdict.found, []
    if file.retired_at is not None:
        told.append(f"gone from the ingest folder since {moment(file.retired_at)}, and back now")
    elif not found.path.endswith("/") and (found.size_bytes, found.mtime_ns) != (
        file.size_bytes,
        file.mtime_ns,
    ):
        told.append(f"changed since it was read: {file.size_bytes:,} bytes then, {found.size_bytes:,} now")
    if file.rules != rules and not (verdict.refused and verdict.refused == found.refused):
        told.append(
            "judged by other rules then (code, settings or benchmarks): the next scan judges it again"
        )
    reason = verdict.refused.reason.value if verdict.refused else None
    if near is not None and reason is None:
        reason = Reason.NEAR_DUPLICATE.value
    if reason != file.reason and not (reason is None and file.reason in BY_COMPARISON):
        told.append(f"{_outcome(file.reason)} in the database, {_outcome(reason)} now")
    elif verdict.draft and content and verdict.draft.sha256.hex() != content.row.sha256:
        told.append("another text")
    if verdict.draft and content and verdict.draft.score.value != content.row.score:
        told.append(f"score {content.row.score} in the database, {verdict.draft.score.value} now")
    return told


def _outcome(reason: str | None) -> str:
    return "kept" if reason is None else f"refused as {reason}"
