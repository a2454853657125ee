"""Which paths of a source are not looked at: caches, vendored code, what its ignore files name."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

import pathspec
import re2

log = logging.getLogger(__name__)

# No code of anyone's: version control, caches of tools. Passed over without a row.
PASSED_OVER = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", "CVS", "_darcs", ".jj",
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints",
        ".cache", ".idea", ".vs", ".DS_Store",
    }
)  # fmt: skip
# Other people's code, installed or copied in (after github-linguist's vendor.yml). One row each.
VENDORED = frozenset(
    {
        "node_modules", "bower_components", "jspm_packages", ".yarn", ".pnpm-store",
        "vendor", "vendors", "_vendor", "vendored", "third_party", "third-party", "thirdparty", "3rdparty",
        ".venv", "venv", "virtualenv", "site-packages", "dist-packages", ".tox", ".nox", ".eggs",
        "Godeps", "Pods", "Carthage", ".gradle", ".terraform", ".bundle",
    }
)  # fmt: skip
VENDORED_SUFFIXES = (".dist-info", ".egg-info")  # what a Python installer leaves

IGNORE_FILES = (".gitignore", ".ratchetignore")  # of every directory; the last match wins
MAX_IGNORE_BYTES = 64_000
MAX_PATTERNS = 1_000  # of one directory
MAX_PATTERNS_OF_SOURCE = 5_000  # the costliest take 3 ms each to compile, usual ones 0.3
MAX_PATTERN_CHARACTERS = 200
SLOW_FROM = 1.0  # seconds, in all, from which on it counts how slow the patterns of a directory are
SLOW_MATCH = 0.000_3  # seconds a path; usual ones take 4 µs, those made to be slow 15 ms
MAX_WILDCARDS = 3  # runs of `*` in a pattern; more make large automata


def is_vendored(directory: str) -> bool:
    return directory in VENDORED or directory.endswith(VENDORED_SUFFIXES)


class IgnoreRules:
    """The patterns of one directory's ignore files, in gitignore's language, matched in linear time."""

    def __init__(self, lines: Iterable[str] = (), most: int = MAX_PATTERNS) -> None:
        patterns = [line for line in lines if line.strip() and not line.startswith("#")]
        usable = [line for line in patterns[: 2 * most] if is_usable(line)][:most]
        self.cost = len(usable)  # patterns compiled, whether or not they are applied
        self._seconds, self._matches = 0.0, 0  # spent, so far
        self._spec = None
        try:
            self._spec = _spec(usable) if usable else None
        except re2.error:  # together they need more memory than re2 allows itself
            usable = []
        if len(usable) < len(patterns):
            log.warning("%d of %d ignore patterns are invalid or too costly: not applied",
                        len(patterns) - len(usable), len(patterns))  # fmt: skip
        self.size = len(usable)

    def verdict(self, path: str) -> bool | None:
        """True: ignored; False: taken back by a `!` pattern; None: no pattern says anything."""
        if self._spec is None:
            return None
        begun = time.perf_counter()
        include = self._spec.check_file(path).include
        self._seconds += time.perf_counter() - begun
        self._matches += 1
        if self._seconds > SLOW_FROM and self._seconds > SLOW_MATCH * self._matches:
            log.warning("ignore patterns made to be slow (%.0f µs a path): no longer applied",
                        1e6 * self._seconds / self._matches)  # fmt: skip
            self._spec = None
        return include

    def ignores(self, path: str) -> bool:
        """Whether the patterns name this path; a directory's ends in a slash."""
        return bool(self.verdict(path))


@dataclass(frozen=True, slots=True)
class Scope:
    """The rules that hold in a directory: its own, then those of the directories above, as git asks them.

    `.git/info/exclude` and the user's global file are not among them: they never travel with a
    repository, so nobody who reads the source could tell why a file is missing.
    """

    rules: IgnoreRules
    start: int  # where in a path what these rules see begins: characters of their directory's own path
    above: "Scope | None" = None

    def ignores(self, path: str) -> bool:
        """Whether a path below this directory is ignored; `path` counts from the source."""
        scope: Scope | None = self
        while scope is not None:
            verdict = scope.rules.verdict(path[scope.start :])
            if verdict is not None:
                return verdict
            scope = scope.above
        return False


def is_usable(pattern: str) -> bool:
    """Whether a pattern is cheap to match, and one that git would understand."""
    runs = sum(1 for before, char in zip(" " + pattern, pattern, strict=False) if char == "*" != before)
    if not pattern.strip() or runs > MAX_WILDCARDS or len(pattern) > MAX_PATTERN_CHARACTERS:
        return False
    try:
        _spec([pattern])
    except (ValueError, re2.error):  # GitIgnorePatternError is a ValueError
        return False
    return True


def _spec(patterns: list[str]) -> pathspec.GitIgnoreSpec:
    return pathspec.GitIgnoreSpec.from_lines(patterns, backend="re2")
