"""Credentials and personal data out of a text, without breaking the code they stand in.

One linear pass of RE2 over the bytes finds candidates; `secret_values` judges what stands at each.
Bytes, because the wrapper of RE2 encodes a `str` and converts every offset at each call. RE2 says only
where a candidate begins: its wrapper looks for the group that took part in a loop over all hundred; `re`
has it at hand (7 µs a candidate, measured) and, with bounded repetitions, does not run away at a known place.
A placeholder has neither quotes nor line breaks, and is itself no candidate.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import re2

from services.processor.stages import secret_patterns, secret_values
from services.processor.values import Redaction

# Addresses stay addresses: RFC 2606, RFC 5737 and RFC 3849 keep these for documentation.
PLACEHOLDERS = {"email": b"email@example.com", "ipv4": b"192.0.2.1", "ipv6": b"2001:db8::1"}
MAX_KEY_BYTES = 32_768  # an RSA key of 16,384 bits takes 13,000
MIN_KEY_BYTES = 24  # what is shorter after its header is a picture of a key
MAX_NAME = 64  # bytes of a name and what joins it to its value
MAX_REPETITION = 6  # of a class of characters, for finding
BEFORE = 80  # bytes before a candidate that may say what it is
DFA_BYTES = 64 << 20  # RE2's 8 MiB are too little for all states of the union: it would go on without them

_HEADER = ("private_key_header", r"-----BEGIN ([0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")
_ASSIGNED = "|".join(pattern for _, pattern in secret_patterns.ASSIGNMENTS)
_FORMS = (  # of the union's groups in their order: what is met often first
    *(form for form, *_ in secret_patterns.TAILED),
    *(form for form, _ in secret_patterns.ASSIGNMENTS),
    *(form for form, _ in (*secret_patterns.CONTEXTS, *secret_patterns.TOKENS, _HEADER)),
)
_PATTERNS = (
    *(tail for *_, tail in secret_patterns.TAILED),
    f"{secret_patterns.NAME}(?:{_ASSIGNED})",
    *(pattern for _, pattern in (*secret_patterns.CONTEXTS, *secret_patterns.TOKENS, _HEADER)),
)
_TOKENS = frozenset(kind for kind, *_ in (*secret_patterns.TOKENS, *secret_patterns.TAILED)) - {"email"}
_BEFORE_NAME = re.compile(rb"[-#; \t]*+(?:(?:export|ENV|ARG|set)[ \t]+)?+")
_REPETITION = re.compile(r"\{(\d+)(,?)(\d*)\}")
_KEY_PART = re.compile(  # escaped line ends stay, the rest of a key goes; the last line may be short
    rb"(\\+[nrt])|-----(?:BEGIN|END)[0-9A-Z ]{1,60}-----|[0-9A-Za-z+/=]{16,}+|"
    rb"[0-9A-Za-z+/=]{2,15}+(?=(?:\\+[nr]|[\s\"'+,;#*>]){1,80}+-----END)"
)
_KEY_BODY = re.compile(rb"(?:(?:\\+[nrt]|[\s\"'`,;#*>.()-]|\+ )*+[0-9A-Za-z+/=]{16,}+)*+")
_KEY_END = re.compile(rb"-----END [0-9A-Z ]{0,60}+-----")
_KEY_FRAME = re.compile(rb"\\+[nrt]|[\s\"'`+,;#*>.()\\-]")


@dataclass(frozen=True, slots=True)
class Redacted:
    text: str
    redactions: tuple[Redaction, ...]


def redact(text: str) -> Redacted:
    """The text with placeholders for secrets and personal data.

    Lines stay as many, and redacting again changes nothing. Raises UnicodeEncodeError for lone
    surrogates, which `decode` never lets through.
    """
    data = text.encode()
    pieces: list[bytes] = []
    redactions: list[Redaction] = []
    done, line = 0, 1
    for start, end, kind, placeholder in _findings(data):
        line += data.count(b"\n", done, start)
        pieces += (data[done:start], placeholder)
        redactions.append(Redaction(kind, line))
        line += data.count(b"\n", start, end)
        done = end
    if not redactions:
        return Redacted(text, ())
    return Redacted((b"".join(pieces) + data[done:]).decode(), tuple(redactions))


def _findings(data: bytes) -> Iterator[tuple[int, int, str, bytes]]:
    """Start, end, kind and placeholder of each, from the first to the last."""
    position = 0
    while found := _FIND.search(data, position):
        begin = found.start()
        match = _WHICH.match(data, begin)
        if match is None or match.lastindex is None:  # long enough for the rough form, not for the exact one
            position = max(begin + 1, found.end() - MAX_NAME)  # a name in it may still be given a secret
            continue
        form = _FORMS[match.lastindex - 1]
        start, end = match.span(match.lastindex)
        if match.lastindex <= len(secret_patterns.TAILED):
            _, characters, least, most, _ = secret_patterns.TAILED[match.lastindex - 1]
            front = data[max(position, begin - most) : begin]
            length = len(front) - len(front.rstrip(characters))
            if length < least:
                position = end
                continue
            start = begin = begin - length
        position = end
        if form == "private_key_header":
            position, placeholder = _private_key(data, begin, match.end())
            if placeholder:
                yield begin, position, "private_key", placeholder
        elif kind := _judge(form, data, begin, start, end):
            yield start, end, kind, _placeholder(kind)
        elif form in secret_patterns.ENCLOSING:
            position = start  # no secret itself, but there may be one in it


def _judge(form: str, data: bytes, begin: int, start: int, end: int) -> str | None:
    """The kind of what stands from start to end in a form that begins at `begin`; None when it may stay."""
    value, before = data[start:end], data[max(0, begin - BEFORE) : begin]
    if form in _TOKENS:
        return form if secret_values.is_varied(value) else None
    if personal := secret_values.PERSONAL.get(form):
        return form if personal(value.decode(), before, data[end : end + 2]) else None
    if form in ("url", "login"):
        return "password" if secret_values.is_password(value) else None
    if form == "header":
        return _format(value) or ("token" if secret_values.is_token(value) else None)
    return _judge_assigned(form, data, begin, start, end)


def _judge_assigned(form: str, data: bytes, begin: int, start: int, end: int) -> str | None:
    """The same for a value given to a name."""
    value, before = data[start:end], data[max(0, begin - BEFORE) : begin]
    front = before[len(before.rstrip(secret_patterns.NAME_CHARACTERS)) :]
    named = data[_BEFORE_NAME.match(data, begin).end() : start]  # type: ignore[union-attr]  # it matches nothing, too
    name = front + named[: len(named) - len(named.lstrip(secret_patterns.NAME_CHARACTERS))]
    if form in ("setting", "bare") and secret_patterns.CODE.match(value):
        return None
    if b"REDACTED_" in front + named:  # a placeholder of ours, which looks like the name of what follows it
        return None
    strict = (
        form in ("setting", "spaced")
        or b"," in data[begin:start]
        or (form == "bare" and before.endswith(b":"))
    )
    if not secret_values.is_secret(name.lower(), value, strict=strict):
        return None
    return _format(value) or secret_values.kind(name.lower())


def _format(value: bytes) -> str | None:
    """The kind of token that a value begins as."""
    match = _WHICH.match(value)
    form = _FORMS[match.lastindex - 1] if match and match.lastindex else ""
    return form if form in _TOKENS else None


def _private_key(data: bytes, begin: int, body: int) -> tuple[int, bytes]:
    """Where the key whose header is data[begin:body] ends, and what replaces it; nothing if it is none."""
    closing = data.find(b"-----END ", body, body + MAX_KEY_BYTES)
    footer = _KEY_END.match(data, closing) if closing >= 0 else None
    end = footer.end() if footer else body
    if footer is None or not _is_key_body(data[body:closing]):
        end = _KEY_BODY.match(data, body, body + MAX_KEY_BYTES).end()  # type: ignore[union-attr]  # empty too
        if not _is_key_body(data[body:end]):
            return body, b""
    return end, _KEY_PART.sub(lambda part: part[1] or _placeholder("private_key"), data[begin:end])


def _is_key_body(body: bytes) -> bool:
    """Whether it is base64 for the most part, once quotes, line ends and signs of joining are off."""
    bare = _KEY_FRAME.sub(b"", body)
    encoded = sum(len(part[0]) for part in _KEY_PART.finditer(body) if not part[1])
    return encoded >= MIN_KEY_BYTES and encoded >= 0.6 * len(bare)


def _placeholder(kind: str) -> bytes:
    return PLACEHOLDERS.get(kind) or b"REDACTED_" + kind.upper().encode()


def _compiled() -> tuple[Any, re.Pattern[bytes]]:
    """What finds a candidate, and what says by its only group that takes part which form it has.

    For finding, long repetitions are cut short: the automaton of the exact union has 17,000 instructions,
    and every state it meets for the first time costs time in proportion.
    """
    union = "|".join(one if re.compile(one).groups else f"({one})" for one in _PATTERNS)
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.max_mem = DFA_BYTES
    return re2.compile(_REPETITION.sub(_cut, union).encode(), options), re.compile(union.encode())


def _cut(repetition: re.Match[str]) -> str:
    least, most = int(repetition[1]), int(repetition[3] or 0) if repetition[2] else int(repetition[1])
    return repetition[0] if 0 < most <= MAX_REPETITION else f"{{{min(least, MAX_REPETITION)},}}?"


_FIND, _WHICH = _compiled()
