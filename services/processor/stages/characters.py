"""Figures of a whole text: its characters and lines, encoded data in it, what of it a browser shows."""

import numpy as np
from numpy.typing import NDArray

from services.processor.stages import encoded, markup
from services.processor.stages.once import once

WIDE = 100  # characters; PEP 8 and its like say 72 to 100


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
    def _lengths(self) -> NDArray[np.int64]:  # (lines,) characters
        if self.text.isascii() and b"\r" not in self.data:
            ends = np.concatenate(([-1], np.flatnonzero(self._bytes == 0x0A), [len(self.data)]))
            return ends[1:] - ends[:-1] - 1
        return np.fromiter(map(len, self.lines), np.int64, len(self.lines))

    @once
    def longest_line(self) -> int:
        return int(self._lengths.max(initial=0))

    @once
    def mean_line(self) -> float:
        return len(self.text) / max(len(self.lines), 1)

    @once
    def wide_lines(self) -> float:
        return int(np.count_nonzero(self._lengths > WIDE)) / max(len(self.lines), 1)

    @once
    def visible(self) -> int:
        """Bytes that are neither blanks nor control characters."""
        return int(np.count_nonzero(self._bytes > 0x20))

    @once
    def blanks(self) -> float:
        return 1 - self.visible / max(len(self.data), 1)

    @once
    def letters(self) -> float:
        """Of all bytes; beyond ASCII all count as letters."""
        folded = self._bytes | 0x20
        count = np.count_nonzero(folded - np.uint8(0x61) < 26) + np.count_nonzero(self._bytes > 0x7F)
        return int(count) / max(len(self.data), 1)

    @once
    def wording(self) -> float:
        """Letters among the visible bytes."""
        return self.letters * len(self.data) / max(self.visible, 1)

    @once
    def digits(self) -> float:
        """Of the visible bytes."""
        return int(np.count_nonzero(self._bytes - np.uint8(0x30) < 10)) / max(self.visible, 1)

    # Encoded data and markup

    @once
    def encoded_runs(self) -> tuple[int, int]:
        return encoded.runs(self.data, self._bytes)

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
