"""A team: a folder with an adapter for each role that profiles.json names, and a value head beside them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError, UnsafeAdapterError
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.profiles import check as check_profiles
from services.trainer.vetting import adapters, models
from services.trainer.vetting.configs import decoded, shortened
from services.trainer.vetting.weights import FLOATS, headers

PROFILES = "profiles.json"
CRITIC, VALUE_HEAD = "critic", "value_head.safetensors"
FIELDS = {"role": str, "prompt": str, "with_answer": bool}
MOST_AGENTS = 16


def is_team(folder: Path) -> bool:
    return (folder / PROFILES).is_file()


def profiles(folder: Path) -> tuple[Profile, ...]:
    """Who is in the team, in order. Raises UnsafeAdapterError for a file that says anything else."""
    path = folder / PROFILES
    content = decoded(path)
    if not isinstance(content, list) or not 0 < len(content) <= MOST_AGENTS:
        raise UnsafeAdapterError(f"{path} holds no list of 1 to {MOST_AGENTS} agents")
    found = tuple(_profile(path, each) for each in content)
    try:
        check_profiles(found)
    except ConfigurationError as exc:
        raise UnsafeAdapterError(f"{path}: {exc}") from exc
    return found


def parts(folder: Path, paths: Sequence[Path]) -> list[Path]:
    """The folders of its adapters, by role, when it holds them, its value head and nothing else to load.

    paths: every file of the folder. Raises UnsafeAdapterError otherwise.
    """
    roles = [profile.role for profile in profiles(folder)]
    for path in paths:
        _check_place(folder, path, roles)
    _check_value_head(folder, paths)
    for role in roles:
        for name in (adapters.CONFIG, adapters.WEIGHTS):
            if folder / role / name not in paths:
                raise UnsafeAdapterError(
                    f"{folder / PROFILES} names the role {role}, but {role}/{name} is missing"
                )
    return [folder / role for role in roles]


def _profile(path: Path, content: Any) -> Profile:
    if not isinstance(content, Mapping) or set(content) != set(FIELDS):
        raise UnsafeAdapterError(
            f"{path} holds {shortened(content)}: expected an agent's {', '.join(FIELDS)}"
        )
    for name, kind in FIELDS.items():
        if not isinstance(content[name], kind):
            raise UnsafeAdapterError(
                f"{path} has {name} {shortened(content[name])}: expected a {kind.__name__}"
            )
    return Profile(**content)


def _check_place(folder: Path, path: Path, roles: Sequence[str]) -> None:
    """At the top lies nothing that is a model itself: whoever loads the folder gets its roles, or nothing."""
    inside = path.relative_to(folder).parts
    if len(inside) == 1:
        if path.suffix == ".safetensors" or path.name in (adapters.CONFIG, models.CONFIG):
            raise UnsafeAdapterError(f"{path} lies beside {PROFILES}: a team's adapters lie in a folder each")
    elif len(inside) > 2 or inside[0] not in (*roles, CRITIC):
        raise UnsafeAdapterError(f"{path} belongs to no role of {PROFILES}: it has {', '.join(roles)}")
    elif path.name == models.CONFIG:
        raise UnsafeAdapterError(f"{path} is a model's: expected an adapter in the folder of a role")


def _check_value_head(folder: Path, paths: Sequence[Path]) -> None:
    beside = [path for path in paths if path.parent == folder / CRITIC]
    for path in beside:
        if path.name != VALUE_HEAD:
            raise UnsafeAdapterError(f"{path} is no value head: expected {VALUE_HEAD} alone in {CRITIC}")
    for name, tensor in headers(folder, beside).items():
        if tensor.dtype not in FLOATS or not 1 <= len(tensor.shape) <= 2:
            raise UnsafeAdapterError(
                f"{folder / tensor.file}: {name} of {tensor.dtype} {list(tensor.shape)} is no weight of a"
                " value head"
            )
