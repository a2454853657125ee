"""Which paths of a source are not looked at: caches, vendored code, what its ignore files name."""

import logging
from collections.abc import Iterable

import pathspec

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

IGNORE_FILES = (".gitignore", ".ratchetignore")  # at the root of a source; the last match wins
MAX_PATTERNS = 1_000
MAX_WILDCARDS = 3  # runs of `*` in a pattern: matching one is polynomial in the path, of this degree


def is_vendored(directory: str) -> bool:
    return directory in VENDORED or directory.endswith(VENDORED_SUFFIXES)


class IgnoreRules:
    """The patterns of a source's ignore files, in gitignore's language."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        patterns = [line for line in lines if line.strip() and not line.startswith("#")]
        usable = [line for line in patterns if _is_cheap(line) and _is_valid(line)][:MAX_PATTERNS]
        if len(usable) < len(patterns):
            log.warning("%d of %d ignore patterns are invalid or too costly: not applied",
                        len(patterns) - len(usable), len(patterns))  # fmt: skip
        self._spec = pathspec.GitIgnoreSpec.from_lines(usable) if usable else None

    def ignores(self, path: str) -> bool:
        """Whether the source does not want this path; a directory's ends in a slash."""
        return self._spec is not None and self._spec.match_file(path)


def _is_cheap(pattern: str) -> bool:
    runs = sum(1 for before, char in zip(" " + pattern, pattern, strict=False) if char == "*" != before)
    return runs <= MAX_WILDCARDS and len(pattern) <= 1_000


def _is_valid(pattern: str) -> bool:
    try:
        pathspec.GitIgnoreSpec.from_lines([pattern])
    except ValueError:  # GitIgnorePatternError is one
        return False
    return True
