"""What is searched."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A content of a repository, as it may be shown to a model."""

    cluster_id: int  # near duplicates share it
    source: str
    path: str
    text: str
