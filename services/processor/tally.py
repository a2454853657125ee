"""What one scan of a source came to."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts are of paths."""

    source: str  # printable
    stored: int = 0  # paths that hold a content now
    rejected: Counter[str] = field(default_factory=Counter)  # by reason
    unchanged: int = 0
    retired: int = 0
    renamed: int = 0
    seconds: float = 0.0
    complete: bool = False  # walked to its end
    again: bool = False  # near duplicates of what is gone are to be judged again
    directories: list[str] = field(default_factory=list)  # that were listed, below the source

    @property
    def changed(self) -> bool:
        return bool(self.stored or self.rejected or self.retired)

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.rejected.most_common())
        return (
            f"{self.source}: {self.stored} stored, {self.rejected.total()} rejected"
            f"{f' ({reasons})' if reasons else ''}, {self.unchanged} unchanged, {self.retired} retired"
            f"{f', {self.renamed} renamed' if self.renamed else ''} in {self.seconds:.1f} s"
        )
