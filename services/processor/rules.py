"""What files are judged by, beside the code: settings and benchmarks. Other rules: judged again."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from services.core.settings import Settings
from services.processor.stages.score import SCORER_VERSION

# Raise it with any change to filters, languages, redaction, licences, decontamination or units: what was
# judged by older rules is judged again at the next walk.
JUDGE_VERSION = 4


@dataclass(frozen=True, slots=True)
class Rules:
    benchmarks: Path | None  # folder of benchmark files beside HumanEval
    licence_allow: tuple[str, ...] = ()  # SPDX identifiers or patterns of them; empty: all
    licence_deny: tuple[str, ...] = ()
    decontaminate: bool = True  # False: texts may hold tasks of benchmarks

    @classmethod
    def of(cls, settings: Settings) -> "Rules":
        return cls(
            settings.benchmarks_dir.absolute(),
            settings.licence_allow,
            settings.licence_deny,
            settings.decontaminate,
        )

    @property
    def restricts_licences(self) -> bool:
        return bool(self.licence_allow or self.licence_deny)

    @property
    def digest(self) -> int:
        """A number for the rules as they are now: 31 bits, never 0, which stands for none."""
        licences = self.licence_allow, self.licence_deny
        told = (JUDGE_VERSION, SCORER_VERSION, licences, self.decontaminate, self._benchmark_files())
        return int.from_bytes(hashlib.sha256(repr(told).encode()).digest()[:4], "big") % (2**31 - 1) + 1

    def _benchmark_files(self) -> list[tuple[str, int, int]]:
        if self.benchmarks is None or not self.benchmarks.is_dir():
            return []
        status = {str(path): path.stat() for path in self.benchmarks.rglob("*") if path.is_file()}
        return sorted((name, found.st_size, found.st_mtime_ns) for name, found in status.items())
