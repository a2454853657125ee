"""Completion pairs: code to continue, in the chat template.

The seed's format: an instruction and the first 30-40 % of the code (at least 5 lines) in the base
model's chat template; the rest is the completion. The loss is on the completion only. A content too
long for one pair is cut into several, between units or statements where it can be; nothing is dropped.
"""

import hashlib
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.core.errors import ConfigurationError
from services.trainer.samples.boundaries import Boundaries, lines_of
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.judging import judged_tokens, moved
from services.trainer.samples.pieces import Piece, split
from services.trainer.samples.sample import Sample, extract
from services.trainer.samples.source import SampleSource
from services.trainer.samples.template import Frame, frame

INSTRUCTIONS = (
    "Complete the following {language} code:",
    "Implement the {language} function:",
    "Write {language} code to solve this:",
    "Generate {language} code for:",
    "Create a {language} implementation:",
    "Develop {language} code that:",
)
SPOKEN = {  # how a language is called in a sentence, where it is not just capitalised
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "php": "PHP",
    "sql": "SQL",
    "html": "HTML",
    "css": "CSS",
    "json": "JSON",
    "yaml": "YAML",
    "toml": "TOML",
    "xml": "XML",
}
FENCES = {"c++": "cpp", "c#": "csharp", "shell": "bash"}  # a fence's name, where it is another
CONTEXT_SHARE = (0.30, 0.40)
MIN_CONTEXT_LINES = 5
SLACK = 8  # tokens that a text may grow by when it is encoded in two parts
MIN_ROOM = 32  # tokens that the template must leave for code
TOO_LONG = 3.5  # characters a token: a longer text is likely to be cut, and measured at once
TICKS = re.compile(r"`{3,}")


@dataclass(frozen=True)
class _Job:
    """A piece of a content that is to become a pair."""

    place: int  # of the content among all
    content: SampleSource
    boundaries: Boundaries
    piece: Piece
    budget: int | None = None  # tokens it was cut to

    def divided(self, starts: Sequence[int], room: int) -> "list[_Job]":
        """In pieces that fit into the room; in smaller ones when such a piece did not."""
        budget = room if self.budget is None else max(1, self.budget * 3 // 5)
        pieces = split(self.piece, starts, self.boundaries, budget)
        return [replace(self, piece=piece, budget=budget) for piece in pieces]


@dataclass(frozen=True)
class _Pair:
    """The four texts of a pair, and what it is made of."""

    job: _Job
    question: str
    opening: str
    code: str
    closing: str
    code_byte: int  # in the content, that the code begins at


def completion_pairs(contents: Sequence[SampleSource], encoder: Encoder, max_length: int) -> list[Sample]:
    """The completion pairs of the contents, in order, each at most `max_length` tokens.

    Which instruction and how much context is decided by a hash of the text: the same content gives the
    same pairs in every round. Pairs without anything that is judged of their content are left out. Raises
    ConfigurationError when `max_length` leaves no room for code.
    """
    around = frame(encoder)
    jobs = []
    for place, content in enumerate(contents):
        lines = lines_of(content.text)
        if len(lines) > MIN_CONTEXT_LINES:  # else nothing is left to complete after the context
            boundaries = Boundaries(lines, content.units)
            jobs.append(_Job(place, content, boundaries, Piece(content.text, 0, 0)))
    most = TOO_LONG * max_length
    waiting = [job for job in jobs if len(job.content.text) <= most]
    too_long = [job for job in jobs if len(job.content.text) > most]
    rooms = {job.content.language: 0 for job in jobs}
    made: list[tuple[int, int, Sample]] = []  # content's place, first byte of the piece
    while waiting or too_long:
        for job, (_, starts) in zip(
            too_long, encoder.located([job.piece.text for job in too_long]), strict=True
        ):
            language = job.content.language
            rooms[language] = rooms[language] or _room(language, around, encoder, max_length)
            waiting += job.divided(starts, rooms[language])
        pairs = [pair for job in waiting if (pair := _pair(job)) is not None]
        waiting, too_long = [], []
        for pair, sample in zip(pairs, _encoded(pairs, around, encoder), strict=True):
            if len(sample.ids) <= max_length:
                if sample.judged != ():
                    made.append((pair.job.place, pair.job.piece.start_byte, sample))
            else:
                too_long.append(pair.job)
    return [sample for _, _, sample in sorted(made, key=lambda each: each[:2])]


def context_end(text: str, boundaries: Boundaries, first_line: int, share: float) -> int:
    """Where the context ends, in characters: at the best boundary between 30 and 40 % of the lines.

    At the one nearest to `share` of equally good ones. Of less than six lines, by characters.
    """
    lines = lines_of(text)
    low, high = CONTEXT_SHARE
    if len(lines) > MIN_CONTEXT_LINES:
        wanted = max(MIN_CONTEXT_LINES, round(share * len(lines)))
        first = max(MIN_CONTEXT_LINES, -int(-low * len(lines) // 1))
        last = min(int(high * len(lines)), len(lines) - 1)
        allowed = range(first_line + first, first_line + last + 1) or [first_line + wanted]
        return sum(map(len, lines[: boundaries.best(allowed, first_line + wanted) - first_line]))
    first, last = int(low * len(text)), int(high * len(text))
    for end in ("\n", " "):
        if (at := text.rfind(end, first, last)) >= 0:
            return at + 1
    return max(1, round(share * len(text)))


def _pair(job: _Job) -> _Pair | None:
    """The texts of the pair; None when there is nothing to complete."""
    content, piece = job.content, job.piece
    digest = hashlib.blake2b(piece.text.encode(), digest_size=8).digest()
    low, high = CONTEXT_SHARE
    share = low + (high - low) * int.from_bytes(digest[1:5], "big") / 2**32
    cut = context_end(piece.text, job.boundaries, piece.first_line, share)
    code = piece.text[cut:].removesuffix("\n")
    if not code:
        return None
    # Longer than any that the code has: it must not seem to end before it does.
    ticks = "`" * max(3, 1 + max((len(run) for run in TICKS.findall(piece.text)), default=0))
    opening, closing = f"{ticks}{FENCES.get(content.language, content.language)}\n", f"\n{ticks}"
    instruction = _instructions(content.language)[digest[0] % len(INSTRUCTIONS)]
    context = piece.text[:cut].removesuffix("\n")
    code_byte = piece.start_byte + len(piece.text[:cut].encode())
    return _Pair(job, f"{instruction}\n\n{opening}{context}{closing}", opening, code, closing, code_byte)


def _encoded(pairs: Sequence[_Pair], around: Frame, encoder: Encoder) -> list[Sample]:
    questions = encoder.plain([pair.question for pair in pairs])
    codes = encoder.plain([pair.code for pair in pairs])
    fences = list(dict.fromkeys(fence for pair in pairs for fence in (pair.opening, pair.closing)))
    known = dict(zip(fences, encoder.plain(fences), strict=True))
    samples = []
    before, between, lead, after = (array("i", part) for part in around.parts)
    for pair, question, code in zip(pairs, questions, codes, strict=True):
        prompt = before + question + between
        start = len(prompt) + len(lead) + len(known[pair.opening])
        ids = prompt + lead + known[pair.opening] + code + known[pair.closing] + after
        size = len(pair.code.encode())
        content_id, piece = pair.job.content.content_id, pair.job.piece
        extracts = extract(content_id, piece.first_line + 1, piece.text, len(ids))
        sample = Sample(content_id, ids, len(prompt), start, start + len(code), size, extracts=extracts)
        samples.append(_judged(sample, pair, encoder))
    return samples


def _judged(sample: Sample, pair: _Pair, encoder: Encoder) -> Sample:
    """The sample, with what is judged of its code."""
    if (spans := pair.job.content.judged) is None:
        return sample
    (located,) = encoder.located([pair.code])
    ranges, size = judged_tokens(located.starts, sample.code_bytes, moved(spans, pair.code_byte))
    tokens = tuple((sample.code_start + first, sample.code_start + last) for first, last in ranges)
    return replace(sample, judged=tokens, code_bytes=size)


def _instructions(language: str) -> list[str]:
    spoken = SPOKEN.get(language, language.capitalize())
    return [instruction.format(language=spoken) for instruction in INSTRUCTIONS]


def _room(language: str, around: Frame, encoder: Encoder, max_length: int) -> int:
    """Tokens of code that surely fit beside the template, the instruction and the fences."""
    fence = FENCES.get(language, language)
    framed = [f"{each}\n\n```{fence}\n\n```\n```{fence}\n\n```" for each in _instructions(language)]
    taken = around.tokens + max(map(len, encoder.plain(framed))) + SLACK
    if max_length - taken < MIN_ROOM:
        raise ConfigurationError(
            f"max_length={max_length} leaves no room for code: the chat template of {encoder.name} and the"
            f" instruction take {taken} tokens; at least {taken + MIN_ROOM} are needed"
        )
    return max_length - taken
