"""A text too long for one sample, in pieces that fit: cut where it hurts least."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from services.trainer.samples.boundaries import Boundaries, lines_of
from services.trainer.samples.encoder import cut_tokens

MIN_LINES = 10  # of a piece, where lines are of usual length
EARLIEST = 0.8  # of the room a piece must fill before a good boundary may end it
SHARED_IN_TWO = (
    1.5  # times the room: so little is left that two even pieces are better than a full and a rest
)


@dataclass(frozen=True)
class Piece:
    """A span of a content's text."""

    text: str
    start_byte: int  # in the content
    first_line: int  # that it begins in, from 0


def split(piece: Piece, starts: Sequence[int], boundaries: Boundaries, budget: int) -> list[Piece]:
    """The piece in order in smaller ones of at most about `budget` tokens; together they are the piece.

    `starts` are the bytes of the piece that its tokens begin at, `boundaries` those of its content.
    """
    data = piece.text.encode()
    line_bytes = list(accumulate((len(line.encode()) for line in lines_of(piece.text)), initial=0))
    line_tokens = [bisect_left(starts, byte) for byte in line_bytes]
    cuts = [0]  # bytes
    while (left := len(starts) - (done := bisect_left(starts, cuts[-1]))) > budget:
        room = budget if left >= SHARED_IN_TWO * budget else -(-left // 2)
        first = bisect_left(line_tokens, done + EARLIEST * room)
        last = bisect_right(line_tokens, done + (room if room == budget else budget)) - 1
        here = bisect_right(line_bytes, cuts[-1])  # the first line that begins behind the last cut
        usual = range(max(first, here - 1 + MIN_LINES), min(last, len(line_tokens) - 1 - MIN_LINES) + 1)
        allowed = usual or range(max(first, here), min(last, len(line_tokens) - 2) + 1)
        if allowed:
            wanted = min(last, bisect_left(line_tokens, done + room))
            absolute = range(piece.first_line + allowed[0], piece.first_line + allowed[-1] + 1)
            cut = line_bytes[boundaries.best(absolute, piece.first_line + wanted) - piece.first_line]
        else:
            tokens = [start - cuts[-1] for start in starts[done:]]
            cut = cuts[-1] + tokens[cut_tokens(data[cuts[-1] :], tokens, budget)[1]]
        cuts.append(cut)
    cuts.append(len(data))
    return [
        Piece(
            data[start:end].decode(),
            piece.start_byte + start,
            piece.first_line + bisect_right(line_bytes, start) - 1,
        )
        for start, end in pairwise(cuts)
    ]
