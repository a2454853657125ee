"""A team as one release: a folder for each role, the critic beside them, one manifest and receipt over all.

Roles are never published apart: each was trained, and judged, beside the others.
"""

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.core.models import ContentRole, Json, ServiceState
from services.trainer import canary_suite, gate, model, publish
from services.trainer.assessing import Reports
from services.trainer.context import Context
from services.trainer.engine.compute import Compute
from services.trainer.ledger import Round
from services.trainer.receipts import practice
from services.trainer.reinforcement import evaluating
from services.trainer.reinforcement.figures import Training
from services.trainer.reinforcement.profiles import Profile
from services.trainer.vetting.teams import PROFILES

if TYPE_CHECKING:
    from services.trainer.reinforcement.team import Team

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Finished:
    """A round of reinforcement whose candidate is to be published; its best weights are in the team."""

    source: model.Source
    team: "Team"
    profiles: Sequence[Profile]
    training: Training
    verdict: gate.Verdict
    reports: Reports
    tasks: Mapping[ContentRole, Sequence[practice.Stored]]  # the round's, in order


def publish_team(context: Context, round_: Round, finished: Finished) -> Json:
    """Write the release below the track's folder and name it; its manifest, for the ledger.

    The canary is the answering role's: its loss on fixed texts, what it writes after fixed prompts. Raises
    PublishError as `publish.publish` does.
    """
    context.heart.beat(state=ServiceState.PUBLISHING, message="writing the adapters of the team")
    team, beat = finished.team, context.heart.beat
    manifest = _manifest(context, round_, finished)
    parent = None if round_.parent is None else context.track_dir / round_.parent.directory
    behind = practice.Practice(finished.training.weights_step, finished.training.exposures)

    def write(folder: Path) -> None:
        team.save(folder)
        _write_json(folder / PROFILES, [asdict(profile) for profile in finished.profiles])
        _write_json(folder / SUMMARY, finished.training.summary())
        team.tokenizer.save_pretrained(folder)
        model.drop_code(folder)
        practice.write(folder, round_.name, manifest, parent, finished.tasks, behind, beat)

    return publish.publish(context.track_dir, round_.name, write, manifest, beat)


def _manifest(context: Context, round_: Round, finished: Finished) -> Json:
    recipe, team = context.recipe, finished.team
    with team.acting(team.roles[-1]):
        nats = canary_suite.measure(Compute(team.model, united=False), team.tokenizer, recipe)
        written = canary_suite.greedy(team.model, team.tokenizer)
    return {
        "track": recipe.name,
        "round": round_.number,
        "kind": publish.TEAM,
        "roles": list(team.roles),
        "recipe": recipe.model_dump(mode="json"),
        "base_model": recipe.base_model,
        "base_revision": getattr(team.model.config, "_commit_hash", None) or finished.source.revision,
        "parent": None if round_.parent is None else round_.parent.directory,
        "snapshot_hash": round_.snapshot_hash,
        "metrics": {
            "training": finished.training.summary(),
            "verdict": finished.verdict.as_json(),
            "assessments": evaluating.figures(finished.reports),
        },
        "canary": nats,
        "greedy": written,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _write_json(path: Path, content: Any) -> None:
    path.write_text(
        json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8"
    )
