"""What `kubectl apply -k` would apply: as much of Kustomize as deploy/kubernetes uses.

`kubectl kustomize` is what decides; where it is installed, a test compares the two.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]
KEYS = {"volumeMounts": "mountPath", "ports": "containerPort"}  # of lists that are merged; else by name


def build(folder: Path) -> list[Manifest]:
    """The resources of a kustomization with its components, patches and images."""
    return _apply(folder, [])


def _apply(folder: Path, inherited: list[Manifest]) -> list[Manifest]:
    """What is there with what this folder adds and changes."""
    asked = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    found = list(inherited)
    for name in asked.get("resources", []):
        path = folder / name
        found += build(path) if path.is_dir() else _documents(path)
    for name in asked.get("components", []):
        found = _apply(folder / name, found)
    for patch in asked.get("patches", []):
        for document in _documents(folder / patch["path"]):
            found = list(_patched(found, document))
    for image in asked.get("images", []):
        for container in (each for one in found for each in containers(one)):
            if container["image"].split(":")[0] == image["name"]:
                container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
    return found


def _documents(path: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def _patched(found: list[Manifest], patch: Manifest) -> Iterator[Manifest]:
    for one in found:
        if (one["kind"], one["metadata"]["name"]) != (patch["kind"], patch["metadata"]["name"]):
            yield one
        elif patch.get("$patch") != "delete":
            yield _merged(one, patch)


def _merged(old: Any, new: Any, key: str = "") -> Any:
    """A strategic merge: mappings key by key, lists of named things by name, anything else replaced."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: _merged(old.get(name), new.get(name, old.get(name)), name) for name in {**old, **new}}
    by = KEYS.get(key, "name")
    if (
        isinstance(old, list)
        and isinstance(new, list)
        and all(isinstance(one, dict) and by in one for one in new)
    ):
        merged = {one[by]: one for one in old}
        merged |= {one[by]: _merged(merged.get(one[by]), one) for one in new}
        return list(merged.values())
    return new


def pod(manifest: Manifest) -> Manifest | None:
    """The pod that a workload makes; None of what makes none."""
    template = manifest.get("spec", {}).get("template")
    return template if isinstance(template, dict) else None


def containers(manifest: Manifest) -> list[Manifest]:
    template = pod(manifest)
    return [] if template is None else list(template["spec"]["containers"])
