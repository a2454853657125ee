"""Files of one repository after one another, what is imported first.

Between them the separators the base model knows from its own training; without such tokens a comment
with the file's path.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from services.trainer.samples.documents import room
from services.trainer.samples.encoder import Encoder, Located, cut_tokens
from services.trainer.samples.imports import in_import_order
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource

SEPARATORS = (
    ("<|repo_name|>", "<|file_sep|>"),  # Qwen2.5-Coder
    ("<repo_name>", "<file_sep>"),  # StarCoder2, SmolLM2
    ("<reponame>", "<filename>"),  # StarCoder
)
MOST_CHARACTERS = 4_000_000  # of one document: a larger repository becomes several, in order
COMMENTS = {  # how a line of a language begins that is a comment, and ends
    "html": ("<!-- ", " -->"), "xml": ("<!-- ", " -->"), "css": ("/* ", " */"), "sql": ("-- ", ""),
    "haskell": ("-- ", ""), "lua": ("-- ", ""), "ocaml": ("(* ", " *)"), "lisp": (";; ", ""),
    "clojure": (";; ", ""), "erlang": ("% ", ""), "tex": ("% ", ""), "vim script": ('" ', ""),
} | dict.fromkeys(
    ("python", "ruby", "shell", "perl", "r", "yaml", "toml", "julia", "elixir", "makefile", "dockerfile"),
    ("# ", ""),
)  # fmt: skip
OTHERWISE = ("// ", "")


@dataclass(frozen=True)
class _Part:
    """A separator, one token that is written as `text`; or a text of a content."""

    text: str
    token: int | None = None
    content_id: int | None = None  # of the file that begins here


def samples(contents: Sequence[SampleSource], max_length: int, encoder: Encoder) -> Iterator[list[Sample]]:
    """Each repository's files in import order, a document at a time, in samples of at most `max_length`.

    A cut is before a file where one begins in a sample's last eighth. Joined, the samples are the whole
    document. A sample belongs to the content it begins in.
    """
    by_repository: dict[str, list[SampleSource]] = {}
    for content in contents:
        by_repository.setdefault(content.repository, []).append(content)
    separators = _separators(encoder)
    for name in sorted(by_repository):
        for group in _groups(in_import_order(by_repository[name])):
            yield _cut(_parts(name, group, separators), max_length, encoder)


def _groups(ordered: Sequence[SampleSource]) -> list[list[SampleSource]]:
    groups: list[list[SampleSource]] = []
    size = MOST_CHARACTERS
    for content in ordered:
        if size + len(content.text) > MOST_CHARACTERS:
            groups.append([])
            size = 0
        groups[-1].append(content)
        size += len(content.text)
    return groups


def _separators(encoder: Encoder) -> tuple[tuple[str, int], tuple[str, int]] | None:
    for repository, file in SEPARATORS:
        first, second = encoder.token(repository), encoder.token(file)
        if first is not None and second is not None:
            return (repository, first), (file, second)
    return None


def _parts(
    name: str, group: Sequence[SampleSource], separators: tuple[tuple[str, int], tuple[str, int]] | None
) -> list[_Part]:
    parts: list[_Part] = []
    if separators is not None and name:
        parts += [_Part(*separators[0], content_id=group[0].content_id), _Part(f"{name}\n")]
    for content in group:
        text = content.text if content.text.endswith("\n") else f"{content.text}\n"
        if separators is not None:
            parts += [_Part(*separators[1], content_id=content.content_id), _Part(f"{content.path}\n{text}")]
        else:
            start, end = COMMENTS.get(content.language, OTHERWISE)
            heading = f"{start}{content.path}{end}\n" if content.path else ""
            parts.append(_Part(f"{heading}{text}", content_id=content.content_id))
    return parts


def _cut(parts: Sequence[_Part], max_length: int, encoder: Encoder) -> list[Sample]:
    ids: array[int] = array("i")
    starts: list[int] = []  # byte in the document that each token begins at
    beginnings: dict[int, int] = {}  # token at which a file begins → content
    size = 0
    texts = iter(encoder.located([part.text for part in parts if part.token is None]))
    for part in parts:
        if part.content_id is not None:
            beginnings[len(ids)] = part.content_id
        found = next(texts) if part.token is None else Located(array("i", [part.token]), [0])
        ids += found.ids
        starts += [size + start for start in found.starts]
        size += len(part.text.encode())
    data = "".join(part.text for part in parts).encode()
    cuts = cut_tokens(data, starts, room(max_length, encoder), beginnings)
    made = []
    content_id = parts[0].content_id or 0
    before = array("i", encoder.begin)
    for first, last in pairwise(cuts):
        content_id = beginnings.get(first, content_id)
        tail = array("i", [encoder.end] if last == len(ids) else [])
        end = starts[last] if last < len(starts) else len(data)
        whole = before + ids[first:last] + tail
        code = max(1, end - starts[first])
        made.append(Sample(content_id, whole, 0, len(before), len(before) + last - first, code, "repository"))
        inside = [beginning for beginning in beginnings if first < beginning < last]
        content_id = beginnings[max(inside)] if inside else content_id
    return made
