"""Figures of a whole text: its characters and lines, encoded data in it, what of it a browser shows."""

import numpy as np

from services.processor.stages import encoded, markup, words
from services.processor.stages.once import once

WIDE = 100  # characters; PEP 8 and its like say 72 to 100
BLANK = np.uint8(0x20)  # the last of the bytes that show nothing


class Characters:
    """Shares are of 0 to 1. Each figure is computed once, when asked for."""

    def __init__(self, language: str, text: str, data: bytes, lines: list[str]) -> None:
        self.language = language
        self.text = text
        self.data = data
        self.lines = lines
        self._bytes = np.frombuffer(data, np.uint8)

    @once
    def characters(self) -> int:
        return len(self.text)

    @once
    def line_count(self) -> int:
        return len(self.lines)

    @once
    def _lengths(self) -> list[int]:  # of the lines, in characters
        return [*map(len, self.lines)]

    @once
    def longest_line(self) -> int:
        return max(self._lengths, default=0)

    @once
    def mean_line(self) -> float:
        return len(self.text) / max(len(self.lines), 1)

    @once
    def wide_lines(self) -> float:
        if self.longest_line <= WIDE:
            return 0.0
        return sum(map(WIDE.__lt__, self._lengths)) / max(len(self.lines), 1)

    @once
    def visible(self) -> int:
        """Bytes that are neither blanks nor control characters."""
        return int(np.count_nonzero(self._bytes > BLANK))

    @once
    def blanks(self) -> float:
        return 1 - self.visible / max(len(self.data), 1)

    @once
    def folded(self) -> words.Folded:
        return words.fold(self.data)

    @once
    def _digits(self) -> int:
        return int(np.count_nonzero(self.folded.array == words.ZERO))

    @once
    def letters(self) -> float:
        """Of all bytes; beyond ASCII all count as letters."""
        return (int(np.count_nonzero(self.folded.inside)) - self._digits) / max(len(self.data), 1)

    @once
    def wording(self) -> float:
        """Letters among the visible bytes."""
        return self.letters * len(self.data) / max(self.visible, 1)

    @once
    def digits(self) -> float:
        """Of the visible bytes."""
        return self._digits / max(self.visible, 1)

    # Encoded data and markup

    @once
    def encoded_runs(self) -> tuple[int, int]:
        return encoded.runs(self.data, self._bytes, self.folded)

    @once
    def longest_encoded(self) -> int:
        return self.encoded_runs[0]

    @once
    def encoded_share(self) -> float:
        return self.encoded_runs[1] / max(len(self.data), 1)

    @once
    def visible_markup(self) -> int:
        """Bytes that a browser would show."""
        return markup.visible_bytes(self.data)

    @once
    def visible_markup_share(self) -> float:
        return self.visible_markup / max(len(self.data), 1)
