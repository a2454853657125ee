"""Reports of base and champion, kept in the round's folder: they do not change while a round is open."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from services.core.models import Subject
from services.trainer.suites.suite import Report, Score

log = logging.getLogger(__name__)
Reports = Mapping[str, Report]  # of one model, by suite


def kept(folder: Path, subject: Subject, work: Callable[[], Reports]) -> Reports:
    """What `work` measures, or did before the round was interrupted."""
    path = folder / f"{subject}-reports.json"
    try:
        return _reports(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        pass
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        log.warning("%s is damaged (%s): the %s is measured again", path, exc, subject)
    found = work()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(
        json.dumps({name: asdict(report) for name, report in found.items()}), encoding="utf-8"
    )
    unfinished.replace(path)
    return found


def _reports(fields: Mapping[str, Mapping[str, Any]]) -> Reports:
    return {
        name: Report(**{**report, "scores": tuple(Score(**score) for score in report["scores"])})
        for name, report in fields.items()
    }
