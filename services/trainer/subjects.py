"""Who answers: the base model, a champion, a round's adapter or team, or a folder that somebody names.

A name is looked up here, checked, and nothing of it loaded yet: what Ratchet published has its files hashed
(`publish.verify`), a stranger's folder is vetted.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from services.core.errors import ConfigurationError, ModelNotFoundError, PublishError
from services.core.models import Json
from services.core.settings import Settings
from services.trainer import publish, vetting
from services.trainer.promotions.line import BASE
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.reinforcement.profiles import Profile
from services.trainer.vetting import teams

Kind = Literal["base", "adapter", "model", "team"]
PUBLISHED: dict[str, Kind] = {"adapter": "adapter", "model": "model", publish.TEAM: "team"}
CHAMPION = "champion"
ADAPTER_CONFIG, MODEL_CONFIG = "adapter_config.json", "config.json"  # PEFT's and transformers' names
EXPECTED = (
    "base, champion, TRACK, TRACK/round-0001, round-0001 of the track that RECIPE names, or a folder; of a"
    " team with /ROLE behind it for one role's adapter"
)


@dataclass(frozen=True)
class Subject:
    """A model that can be loaded."""

    name: str  # as it was asked for
    kind: Kind
    recipe: Recipe  # of its base model; as of its round where it was published
    revision: str | None  # of the base model
    folder: Path | None = None  # None: the base model itself
    manifest: Json | None = None  # None: the base model, or a folder that Ratchet did not publish
    role: str | None = None  # of a team, whose adapter this is; the manifest is the team's

    @property
    def release(self) -> Path | None:
        """The folder that was published: of a role its team's, which has the tokenizer."""
        return self.folder.parent if self.folder is not None and self.role is not None else self.folder

    @property
    def released_as(self) -> str:
        """round-0003; of a role round-0003/coder. A folder of another tool by its name."""
        assert self.folder is not None
        return self.folder.name if self.role is None else f"{self.folder.parent.name}/{self.role}"

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Of a team: who is in it, in order."""
        assert self.folder is not None
        return teams.profiles(self.folder)

    @property
    def is_quantised(self) -> bool:
        """Whether it computes on an NF4 base, as it was trained; whole models never do."""
        return self.kind != "model" and self.recipe.method == "qlora"


def resolve(name: str, settings: Settings, recipe: Recipe | None = None) -> Subject:
    """The subject of that name. recipe: without it the one that RECIPE names, with its overrides.

    Raises ConfigurationError for a name that says nothing, ModelNotFoundError for a folder that holds no
    model, PublishError for damaged files and its UnsafeAdapterError for what must not be loaded.
    """
    recipe = recipe_files.load(settings.recipe, settings.recipe_overrides) if recipe is None else recipe
    if name == BASE:
        return Subject(BASE, "base", recipe, recipe.revision)
    if name == CHAMPION:
        return published(name, champion_folder(settings.adapters_dir, recipe))
    found = _below(settings.adapters_dir, recipe, name)
    if found is not None:
        return published(name, found)
    folder = Path(name).expanduser()
    above, _, role = name.rpartition("/")
    if above and not (folder / publish.MANIFEST).is_file() and _is_release(above, settings, recipe):
        return of_role(resolve(above, settings, recipe), role)
    if not folder.is_dir():
        raise ConfigurationError(f"{name!r} is no model that can be asked: expected {EXPECTED}")
    if (folder / publish.MANIFEST).is_file():
        return published(name, folder.resolve())
    return _foreign(name, folder.resolve(), recipe)


def champion_folder(
    adapters_dir: Path, recipe: Recipe, otherwise: str = "name another adapter, or ask `base`"
) -> Path:
    """Where the recipe's champion lies.

    Raises ConfigurationError without one: train until there is one, or do `otherwise`.
    """
    current = adapters_dir / recipe.name / publish.CURRENT
    if not current.exists():
        raise ConfigurationError(
            f"{recipe.name} has no champion ({current} is not there): run `ratchet up` until a round is"
            f" promoted (`ratchet status` says how far it is), {otherwise}"
        )
    return current.resolve()


def published(name: str, folder: Path) -> Subject:
    """What Ratchet published there, whole and unchanged. Raises PublishError otherwise."""
    manifest = publish.verify(folder)
    if manifest.get("kind") not in PUBLISHED or "recipe" not in manifest:
        raise PublishError(f"{folder / publish.MANIFEST} says neither kind nor recipe: it is not Ratchet's")
    kind: Kind = PUBLISHED[manifest["kind"]]
    recipe = Recipe.model_validate(manifest["recipe"])
    revision = manifest.get("base_revision") or recipe.revision
    return Subject(name, kind, recipe, revision, folder, manifest)


def of_role(team: Subject, role: str) -> Subject:
    """One role's adapter alone. Raises ConfigurationError for a role it has not, and for what is no team."""
    if team.kind != "team" or team.folder is None:
        raise ConfigurationError(f"{team.name} is no team but a {team.kind}: it has no role {role!r}")
    roles = [profile.role for profile in team.profiles]
    if role not in roles:
        raise ConfigurationError(f"{team.name} has no role {role!r}: expected one of {', '.join(roles)}")
    return replace(team, name=f"{team.name}/{role}", kind="adapter", folder=team.folder / role, role=role)


def alone(subject: Subject, what: str) -> ConfigurationError:
    """That something is done with one adapter at a time, and how to name one of a team."""
    roles = " or ".join(f"{subject.name}/{profile.role}" for profile in subject.profiles)
    return ConfigurationError(f"{subject.name} is a team, and {what} one adapter: name {roles}")


def _is_release(name: str, settings: Settings, recipe: Recipe) -> bool:
    """Whether it names something that Ratchet published, so that a role may stand behind it."""
    if name == CHAMPION:
        return (settings.adapters_dir / recipe.name / publish.CURRENT).exists()
    if _below(settings.adapters_dir, recipe, name) is not None:
        return True
    return (Path(name).expanduser() / publish.MANIFEST).is_file()


def _below(adapters_dir: Path, recipe: Recipe, name: str) -> Path | None:
    """A round of the recipe's track, or TRACK, or TRACK/ROUND; None when there is none of that name."""
    track, _, round_name = name.partition("/")
    if track in ("", ".", "..", "~") or "/" in round_name or round_name in (".", ".."):
        return None
    own = adapters_dir / recipe.name / name
    candidates = [adapters_dir / track / (round_name or publish.CURRENT), *([] if round_name else [own])]
    return next((path.resolve() for path in candidates if path.is_dir()), None)


def _foreign(name: str, folder: Path, recipe: Recipe) -> Subject:
    """A folder of another tool. An adapter goes onto the recipe's base model, whatever its config names."""
    vetting.vet(folder)
    if (folder / ADAPTER_CONFIG).is_file():
        return Subject(name, "adapter", recipe, recipe.revision, folder)
    if (folder / MODEL_CONFIG).is_file():
        return Subject(name, "model", recipe, None, folder)
    raise ModelNotFoundError(
        f"{folder} holds no model: expected {ADAPTER_CONFIG} or {MODEL_CONFIG} with safetensors beside it"
    )


def described_base(subject: Subject) -> str | None:
    """The base model that a stranger's adapter says it is for; None where it does not say."""
    if subject.folder is None or subject.manifest is not None or subject.kind != "adapter":
        return None
    config = json.loads((subject.folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    named = config.get("base_model_name_or_path")
    return named if isinstance(named, str) else None
