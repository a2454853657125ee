"""Ask the process with the model what a track's champion gives up, before and after."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from services.core.db import Database
from services.core.models import Json
from services.core.settings import Settings
from services.trainer import publish
from services.trainer.forgetting import passages, steps
from services.trainer.forgetting.steps import Forgetting

CHILD = "services.trainer.forgetting.check"
PASSAGES = 40  # a track
Measure = Callable[[Sequence[Path | None], Json, Sequence[str]], list[Json]]


def before(database: Database, settings: Settings, forgetting: Forgetting, measure: Measure) -> None:
    """Keep passages of what marked adapters learned, and what base and former champion give up of them.

    What cannot be measured is noted and stops nothing: the texts must go.
    """
    tracks = sorted({adapter["track"] for adapter in forgetting.found["adapters"]})
    with database.transaction() as tx:
        texts = passages.sample(tx, forgetting, tracks, PASSAGES)
    path = passages.path_of(settings, forgetting)
    try:
        passages.keep(path, texts)
    except OSError as exc:
        for track in texts:
            told = {"problem": f"passages cannot be kept in {path.parent} ({exc.strerror}): set RATCHET_HOME"}
            steps.probed(database, forgetting, track, told)
        texts = {}
    for track, sampled in texts.items():
        name = _former(forgetting, track)
        found = _asked([None, settings.adapters_dir / track / name], sampled, measure)
        figures = {"base": found[0], "before": found[1]} if isinstance(found, list) else {"problem": found}
        steps.probed(database, forgetting, track, figures)


def after(database: Database, settings: Settings, forgetting: Forgetting, measure: Measure) -> None:
    """What is served now gives up of the same passages; then the passages go too."""
    path = passages.path_of(settings, forgetting)
    for track, sampled in passages.kept(path).items():
        known = forgetting.extraction.get(track, {})
        if "before" not in known:
            continue
        with database.transaction() as tx:
            champion = tx.one("champion", track=track)
        if champion is None:
            figures = known["base"]
        else:
            folder = settings.adapters_dir / track / champion.directory
            found = _asked([folder], sampled, measure)
            if isinstance(found, str):
                steps.probed(database, forgetting, track, {**known, "problem": found})
                continue
            figures = found[0]
        steps.probed(database, forgetting, track, {**known, "after": figures})
    passages.drop(path)


def question(models: Sequence[Path | None], manifest: Json, texts: Sequence[str]) -> Json:
    """What the process is sent: the folders of adapters, None for the base model, and the texts."""
    return {
        "models": [None if folder is None else str(folder.absolute()) for folder in models],
        "recipe": manifest["recipe"],
        "revision": manifest.get("base_revision"),
        "texts": list(texts),
        "passages": PASSAGES,
    }


def _former(forgetting: Forgetting, track: str) -> str:
    """The champion that had to go, or else the newest adapter that was marked."""
    adapters: list[dict[str, Any]] = [a for a in forgetting.found["adapters"] if a["track"] == track]
    champions = [adapter for adapter in adapters if adapter["is_champion"]]
    return str((champions or adapters)[-1]["directory"])


def _asked(models: Sequence[Path | None], texts: Sequence[str], measure: Measure) -> list[Json] | str:
    """Figures of the models, of which one is a folder, or why there are none."""
    newest = next(folder for folder in reversed(models) if folder is not None)
    try:
        manifest = publish.verify(newest)
        return measure(models, manifest, texts)
    except Exception as exc:  # damaged files, no model, no memory: none of it may keep the texts here
        return f"{type(exc).__name__}: {exc}"
