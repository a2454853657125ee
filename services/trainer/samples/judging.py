"""Which tokens of a sample count when only some bytes of its content do."""

from collections.abc import Sequence

from services.trainer.samples.source import Spans


def moved(spans: Spans, start: int) -> Spans:
    """The spans by the bytes of a part of the text that begins at `start`."""
    return tuple((max(0, first - start), last - start) for first, last in spans if last > start)


def judged_tokens(starts: Sequence[int], size: int, spans: Spans, first: int = 0) -> tuple[Spans, int]:
    """The ranges of tokens, from the `first` on, that lie wholly in the spans; and how many bytes those are.

    `starts` are the bytes that the tokens of a text of `size` bytes begin at, `spans` bytes of that text.
    Tokens that share a character count together or not at all.
    """
    ranges: list[tuple[int, int]] = []
    total = at = 0
    token = 0
    while token < len(starts):
        after = token + 1
        while after < len(starts) and starts[after] == starts[token]:
            after += 1
        start, end = starts[token], starts[after] if after < len(starts) else size
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        if (
            token >= first
            and start < end
            and at < len(spans)
            and spans[at][0] <= start
            and end <= spans[at][1]
        ):
            total += end - start
            if ranges and ranges[-1][1] == token:
                ranges[-1] = (ranges[-1][0], after)
            else:
                ranges.append((token, after))
        token = after
    return tuple(ranges), total
