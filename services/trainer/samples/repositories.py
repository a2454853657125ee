"""Files of one repository after one another, what is imported first.

Between them the separators the base model knows from its own training; without such tokens a comment
with the file's path.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from services.trainer.samples.documents import room
from services.trainer.samples.encoder import Encoder, Located, cut_tokens
from services.trainer.samples.imports import in_import_order
from services.trainer.samples.sample import Extract, Sample
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
    heading_bytes: int = 0  # of the text, before the content's own


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
            heading = f"{content.path}\n"
            parts.append(_Part(*separators[1], content_id=content.content_id))
            parts.append(_Part(f"{heading}{text}", heading_bytes=len(heading.encode())))
        else:
            start, end = COMMENTS.get(content.language, OTHERWISE)
            heading = f"{start}{content.path}{end}\n" if content.path else ""
            size = len(heading.encode())
            parts.append(_Part(f"{heading}{text}", content_id=content.content_id, heading_bytes=size))
    return parts


def _cut(parts: Sequence[_Part], max_length: int, encoder: Encoder) -> list[Sample]:
    ids: array[int] = array("i")
    starts: list[int] = []  # byte in the document that each token begins at
    beginnings: dict[int, int] = {}  # token at which a file begins → content
    text_bytes: dict[int, int] = {}  # content → byte at which its own text begins
    size = content_id = 0
    texts = iter(encoder.located([part.text for part in parts if part.token is None]))
    for part in parts:
        if part.content_id is not None:
            content_id = beginnings[len(ids)] = part.content_id
        text_bytes[content_id] = size + part.heading_bytes  # the last part of a file is its text
        found = next(texts) if part.token is None else Located(array("i", [part.token]), [0])
        ids += found.ids
        starts += [size + start for start in found.starts]
        size += len(part.text.encode())
    data = "".join(part.text for part in parts).encode()
    cuts = cut_tokens(data, starts, room(max_length, encoder), beginnings)
    made = []
    content_id = parts[0].content_id or 0
    before = array("i", encoder.begin)
    starts.append(len(data))
    for first, last in pairwise(cuts):
        content_id = beginnings.get(first, content_id)
        tail = array("i", [encoder.end] if last == len(ids) else [])
        whole = before + ids[first:last] + tail
        code = max(1, starts[last] - starts[first])
        inside = {first: content_id} | {at: beginnings[at] for at in beginnings if first < at < last}
        framing = len(whole) - (last - first)
        made.append(
            Sample(
                content_id, whole, 0, len(before), len(before) + last - first, code, "repository",
                extracts=_extracts(inside, last, framing, starts, data, text_bytes),
            )
        )  # fmt: skip
        content_id = inside[max(inside)]
    return made


def _extracts(
    beginnings: Mapping[int, int], end: int, framing: int, starts: Sequence[int], data: bytes,
    text_bytes: Mapping[int, int],
) -> tuple[Extract, ...]:  # fmt: skip
    """What the tokens from the first beginning to `end` hold of each content; the last has the framing."""
    made: list[Extract] = []
    for at, until in pairwise([*beginnings, end]):
        content_id = beginnings[at]
        text = text_bytes[content_id]
        first_line = 1 + data.count(b"\n", text, max(text, starts[at]))
        last_line = 1 + data.count(b"\n", text, starts[until] - 1) if starts[until] > text else first_line - 1
        tokens = until - at
        if made and made[-1].content_id == content_id:  # a repository's name is before its first file
            _, first_line, _, before = made.pop()
            tokens += before
        made.append(Extract(content_id, first_line, last_line, tokens))
    made[-1] = made[-1]._replace(tokens=made[-1].tokens + framing)
    return tuple(made)
