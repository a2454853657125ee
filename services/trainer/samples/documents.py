"""Continued pre-training: whole files, units of their own, repositories. The loss is on everything.

A document that is longer than a row is cut into pieces that joined are the document, at ends of lines
where there are any; the token that ends a document is at the end of its last piece.
"""

import textwrap
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from services.core.errors import ConfigurationError
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import fim
from services.trainer.samples.chance import draw
from services.trainer.samples.encoder import Encoder, cut_tokens
from services.trainer.samples.judging import judged_tokens, moved
from services.trainer.samples.sample import Extract, Sample, extract
from services.trainer.samples.source import SampleSource, Unit

MIN_UNIT_LINES, MIN_UNIT_CHARACTERS = 3, 100  # smaller units are no samples of their own
WHOLE_FILE = 0.9  # of a file's characters: a unit that is more of it would be the same sample again
MIN_FIM_CHARACTERS = 50  # a shorter text has no middle to speak of
FIM_GROWTH = 12  # tokens that a text may grow by in three parts, with what is before them
MIN_ROOM = 32  # tokens


@dataclass(frozen=True)
class Document:
    """A text and what it is: a file, or a unit of one."""

    source: SampleSource
    kind: str
    text: str
    units: tuple[Unit, ...] = ()  # inside it, by its own bytes
    first_line: int = 1  # of the content, that it begins in


@dataclass(frozen=True)
class _Piece:
    document: Document
    start_byte: int
    first_line: int  # of the content, from 1
    text: str
    ids: "array[int]"
    is_last: bool
    starts: Sequence[int] | None = None  # bytes of the piece that its tokens begin at, where it matters
    end_byte: int = 0  # of it in the document, where that matters

    def extract(self, tokens: int) -> tuple[Extract]:
        return extract(self.document.source.content_id, self.first_line, self.text, tokens)


def files(contents: Sequence[SampleSource]) -> list[Document]:
    return [Document(content, "file", content.text, content.units) for content in contents if content.text]


def granules(contents: Sequence[SampleSource], kinds: Sequence[str]) -> list[Document]:
    """Every unit of these kinds, with its comments and body, moved to the left margin.

    Left out: what is smaller than three lines or a hundred characters, what is nearly its whole file, and
    what lies inside a unit of the same kind that is taken.
    """
    return [document for content in contents for document in _granules(content, kinds)]


def samples(
    documents: Sequence[Document],
    recipe: Recipe,
    encoder: Encoder,
    *,
    special: fim.Tokens | None = None,
    round_number: int = 0,
) -> list[Sample]:
    """The documents in order, each in one or more samples of at most `recipe.max_length` tokens.

    With `special` a share of the pieces is turned into fill-in-the-middle, as the recipe's rates say. A piece
    without anything that is judged of its content makes no sample.
    """
    most = room(recipe.max_length, encoder) - (FIM_GROWTH if special else 0)
    pieces = list(_pieces(documents, most, encoder))
    made = [_sample(piece, encoder) for piece in pieces]
    if special is None:
        return [sample for sample in made if sample.judged != ()]
    drawn = {at: draw(recipe.seed, round_number, p.document.source.sha256, p.document.kind, p.start_byte)
             for at, p in enumerate(pieces) if len(p.text) >= MIN_FIM_CHARACTERS}  # fmt: skip
    drawn = {at: random_ for at, random_ in drawn.items() if random_.random() < recipe.fim_rate}
    suffix_first = [random_.random() < recipe.fim_spm_rate for random_ in drawn.values()]
    splits = [
        fim.split(pieces[at].text, _units_in(pieces[at]), random_, recipe.fim_ast_rate)
        for at, random_ in drawn.items()
    ]
    encoded = fim.encode(splits, suffix_first, special, encoder)
    for at, is_spm, ids in zip(drawn, suffix_first, encoded, strict=True):
        before = encoder.begin
        if len(before) + len(ids) > recipe.max_length:
            continue  # encoded in parts it is longer: it stays as it is
        kind = f"{pieces[at].document.kind}, fim-{'spm' if is_spm or special.middle is None else 'psm'}"
        whole = array("i", before) + ids
        size = len(pieces[at].text.encode())
        made[at] = Sample(
            pieces[at].document.source.content_id, whole, 0, len(before), len(whole), size, kind,
            extracts=pieces[at].extract(len(whole)),
        )  # fmt: skip
    return made


def _granules(content: SampleSource, kinds: Sequence[str]) -> Iterator[Document]:
    data = content.text.encode()
    taken_until: dict[str, int] = {}  # kind → end of the last one taken
    for unit in content.units:
        if unit.kind not in kinds or unit.start_byte < taken_until.get(unit.kind, 0):
            continue
        line = data.rfind(b"\n", 0, unit.comment_byte) + 1
        start = line if not data[line : unit.comment_byte].strip() else unit.comment_byte
        text = textwrap.dedent(data[start : unit.end_byte].decode())
        is_tiny = len(text) < MIN_UNIT_CHARACTERS or text.count("\n") + 1 < MIN_UNIT_LINES
        if is_tiny or unit.end_byte - start > WHOLE_FILE * len(data):
            continue
        taken_until[unit.kind] = unit.end_byte
        yield Document(content, unit.kind, text + "\n", first_line=1 + data.count(b"\n", 0, start))


def _pieces(documents: Sequence[Document], most: int, encoder: Encoder) -> Iterator[_Piece]:
    encoded = encoder.plain([each.text for each in documents])
    is_located = [
        len(ids) > most or each.source.judged is not None
        for each, ids in zip(documents, encoded, strict=True)
    ]
    to_locate = [each.text for each, wanted in zip(documents, is_located, strict=True) if wanted]
    found = iter(encoder.located(to_locate) if to_locate else ())
    for document, ids, is_wanted in zip(documents, encoded, is_located, strict=True):
        if not is_wanted:
            yield _Piece(document, 0, document.first_line, document.text, ids, is_last=True)
            continue
        located, starts = next(found)
        data = document.text.encode()
        cuts, line = cut_tokens(data, starts, most), document.first_line
        for first, last in pairwise(cuts):
            start, end = starts[first], starts[last] if last < len(starts) else len(data)
            text = data[start:end].decode(
                errors="replace"
            )  # replaced: one character of more tokens than a row
            is_last, here = last == len(starts), [each - start for each in starts[first:last]]
            yield _Piece(document, start, line, text, located[first:last], is_last, here, end)
            line += text.count("\n")


def room(max_length: int, encoder: Encoder) -> int:
    """Tokens of text in a row, beside what begins and ends a document.

    Raises ConfigurationError when there is none to speak of.
    """
    most = max_length - len(encoder.begin) - 1
    if most < MIN_ROOM:
        raise ConfigurationError(
            f"max_length={max_length} leaves {most} tokens for code: at least {MIN_ROOM}"
        )
    return most


def _sample(piece: _Piece, encoder: Encoder) -> Sample:
    before = encoder.begin
    ids = array("i", before) + piece.ids
    code_end = len(ids)
    if piece.is_last:
        ids.append(encoder.end)
    code_start, size = len(before), len(piece.text.encode())
    if not before and len(piece.ids) > 1:  # nothing predicts the first token: its bytes do not count
        code_start = 1
        size = max(1, size - len(encoder.decode_each(piece.ids[:1])[0].encode()))
    sample = Sample(
        piece.document.source.content_id, ids, 0, code_start, code_end, size, piece.document.kind,
        extracts=piece.extract(len(ids)),
    )  # fmt: skip
    spans = piece.document.source.judged
    if spans is None or piece.starts is None:
        return sample
    here, length = moved(spans, piece.start_byte), piece.end_byte - piece.start_byte
    ranges, size = judged_tokens(piece.starts, length, here, first=code_start - len(before))
    tokens = tuple((len(before) + first, len(before) + last) for first, last in ranges)
    return replace(sample, judged=tokens, code_bytes=size)


def _units_in(piece: _Piece) -> list[Unit]:
    """The units that lie in the piece, by its own bytes."""
    start, end = piece.start_byte, piece.start_byte + len(piece.text.encode())
    return [
        unit._replace(start_byte=unit.start_byte - start, end_byte=unit.end_byte - start)
        for unit in piece.document.units
        if start <= unit.start_byte and unit.end_byte <= end
    ]
