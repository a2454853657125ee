"""What a person says of a source, in `<name>.ratchet.yaml` beside it.

include: ["src/", "*.py"]     # patterns as in .gitignore: nothing else is taken
exclude: ["src/generated/"]   # left out, on top of the ignore files
licence: MIT                  # of the whole source, instead of what is detected
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from services.core.errors import ConfigurationError
from services.processor.reasons import Reason
from services.processor.sources import ignore
from services.processor.sources.ignore import IgnoreRules
from services.processor.sources.reading import read_file
from services.processor.values import Rejection

SUFFIX = ".ratchet.yaml"
MAX_BYTES = 64_000
KEYS = ("include", "exclude", "licence")


class _Loader(yaml.SafeLoader):
    """Without aliases: a hundred bytes of them stand for more than any memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not taken here")
        return super().compose_node(parent, index)


@dataclass(frozen=True, slots=True)
class Options:
    include: IgnoreRules | None = None  # None: everything
    exclude: IgnoreRules = field(default_factory=IgnoreRules)
    licence: str | None = None
    digest: str = ""  # of the file they come from; empty without one

    def refuse(self, path: str) -> Rejection | None:
        """Why these options leave out a file, or a directory whose path ends in a slash."""
        if self.exclude.size and self.exclude.ignores(path):
            return Rejection(Reason.IGNORED, f"excluded by *{SUFFIX}")
        if self.include is not None and not path.endswith("/") and not self.include.ignores(path):
            return Rejection(Reason.IGNORED, f"not included by *{SUFFIX}")
        return None


def read(source: Path) -> Options:
    """The options of the source at this path; the defaults when nobody wrote any.

    Raises ConfigurationError naming the file, the key and the value when they cannot be meant.
    """
    path = source.with_name(source.name + SUFFIX)
    if path.is_symlink() or not path.is_file():
        return Options()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        read = read_file(folder, path.name, MAX_BYTES)
    finally:
        os.close(folder)
    if isinstance(read, Rejection):
        raise ConfigurationError(f"{path}: cannot be read: {read.detail}")
    return parse(read.data, str(path))


def parse(data: bytes, name: str) -> Options:
    """The options in such a file; `name` stands in the messages. Raises ConfigurationError."""
    try:
        document = yaml.load(data.decode(), _Loader)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as exc:
        raise ConfigurationError(f"{name}: not YAML in UTF-8: {str(exc)[:300]}") from exc
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigurationError(
            f"{name}: expected the keys {', '.join(KEYS)}, found a {type(document).__name__}"
        )
    for key in document:
        if key not in KEYS:
            raise ConfigurationError(f"{name}: {str(key)[:80]!r} is no key here; those are {', '.join(KEYS)}")
    include = _patterns(document, "include", name)
    licence = document.get("licence")
    if licence is not None and not (isinstance(licence, str) and 0 < len(licence) <= 200):
        raise ConfigurationError(
            f"{name}: licence: {str(licence)[:80]!r}, expected an SPDX expression such as MIT"
        )
    return Options(
        include=None if include is None else IgnoreRules(include),
        exclude=IgnoreRules(_patterns(document, "exclude", name) or ()),
        licence=licence,
        digest=hashlib.sha256(data).hexdigest()[:16],
    )


def _patterns(document: dict[str, Any], key: str, name: str) -> list[str] | None:
    """The list of patterns under this key; None without one. Each must be one that will be applied."""
    patterns = document.get(key)
    if patterns is None:
        return None
    if isinstance(patterns, str):
        patterns = [patterns]
    if not isinstance(patterns, list) or len(patterns) > ignore.MAX_PATTERNS:
        expected = f"a list of at most {ignore.MAX_PATTERNS} patterns"
        raise ConfigurationError(f"{name}: {key}: {str(patterns)[:80]!r}, expected {expected}")
    for pattern in patterns:
        if not isinstance(pattern, str) or not ignore.is_usable(pattern):
            raise ConfigurationError(
                f"{name}: {key}: {str(pattern)[:80]!r}, expected a pattern as in .gitignore "
                f"of at most {ignore.MAX_PATTERN_CHARACTERS} characters and {ignore.MAX_WILDCARDS} runs of *"
            )
    return patterns
