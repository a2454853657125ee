"""Whose terms a file comes under: SPDX expressions from headers and licence texts, and the lists to keep to.

No library: scancode takes 731 MB and a second a file; `license-expression` parses expressions with 40 kB of
its own and a dependency, for what is 30 lines here.
"""

import re
from fnmatch import fnmatchcase

from services.processor.stages import licence_texts

HEAD_LINES = 60
HEAD_CHARACTERS = 4_000  # of which no more than HEAD_LINES count
MAX_TEXT = 200_000  # characters: longer than any collection of licences
BODY_CHARACTERS = 3_000  # of a short licence, from its decisive phrase on
MAX_TOKENS = 200  # of an expression
UNKNOWN = "unknown"  # what a list calls having no licence that could be read

_HINTS = ("icense", "ICENSE", "icence", "ICENCE", "ermission ", "edistribution ", "GPL", "nencumbered", "CC0")
_SPDX = re.compile(r"SPDX-Licen[cs]e-Identifier:[ \t]*([^\n*<>\"']{1,300})", re.IGNORECASE)
_LETTERS = (
    bytes(ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) in ".+" else 0x20 for byte in range(128))
    + b" " * 128
)
_TOKEN = re.compile(r"\s*([()]|[A-Za-z0-9.+:-]+)")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*\+?")
_TEXTS = tuple(
    (
        name,
        re.compile(phrase),
        re.compile(needed) if needed else None,
        re.compile(excluded) if excluded else None,
    )
    for name, phrase, needed, excluded in licence_texts.TEXTS
)


def of_file(text: str) -> str | None:
    """The SPDX expression of a source file's header, None when its first lines name no licence."""
    head = text[:HEAD_CHARACTERS]
    if not any(hint in head for hint in _HINTS):
        return None
    head = "\n".join(head.split("\n", HEAD_LINES)[:HEAD_LINES])
    if stated := _SPDX.search(head):
        return _valid(stated[1])
    return _notice(_normal(head))


def of_text(text: str) -> str | None:
    """The SPDX identifier of the first licence in a LICENSE or COPYING text, None when none is known."""
    words = _normal(text[:MAX_TEXT])
    earliest: tuple[int, str] | None = None
    for name, phrase, needed, excluded in _TEXTS:
        if (found := phrase.search(words)) is None or (earliest and found.start() >= earliest[0]):
            continue
        body = words[found.start() : found.start() + BODY_CHARACTERS]  # the same licence, not the next one
        if (not needed or needed.search(body)) and not (excluded and excluded.search(body)):
            earliest = found.start(), name
    return earliest[1] if earliest else _notice(words[:HEAD_CHARACTERS])


def is_permitted(expression: str | None, allow: tuple[str, ...], deny: tuple[str, ...]) -> bool:
    """Whether code under these terms may be used.

    Of `A OR B` one suffices, of `A AND B` both are needed. Lists hold SPDX identifiers or globs
    (`GPL-*`), in any case; an empty `allow` allows all that `deny` does not name; `unknown` stands for
    None and for what is no SPDX expression. An exception (`WITH`) only widens a licence, so the licence
    decides, unless a list names it with the exception. `-or-later` is also the licence without it.
    """
    allowed, denied = tuple(map(_canonical, allow)), tuple(map(_canonical, deny))
    tree = _parse(expression) if expression else None
    if tree is None:
        return UNKNOWN not in denied and (not allowed or UNKNOWN in allowed)
    return _holds(tree, allowed, denied)


_Tree = str | tuple[str, "_Tree", "_Tree"]  # an identifier, or AND/OR of two


def _holds(tree: "_Tree", allow: tuple[str, ...], deny: tuple[str, ...]) -> bool:
    if not isinstance(tree, str):
        operator, left, right = tree
        if operator == "OR":
            return _holds(left, allow, deny) or _holds(right, allow, deny)
        return _holds(left, allow, deny) and _holds(right, allow, deny)
    full = _canonical(tree)
    bare = full.partition(" with ")[0]
    if full != bare and (_listed(full, allow, exact=True) or _listed(full, deny, exact=True)):
        return not _listed(full, deny, exact=True)
    if _listed(bare, deny):
        return False
    alone = bare.replace("-or-later", "-only") if bare.startswith(("gpl", "lgpl", "agpl", "gfdl")) else bare
    return not allow or _listed(bare, allow) or _listed(alone.removesuffix("-or-later"), allow)


def _listed(name: str, patterns: tuple[str, ...], *, exact: bool = False) -> bool:
    return any(name == pattern if exact else fnmatchcase(name, pattern) for pattern in patterns)


def _canonical(name: str) -> str:
    """In lower case; `GPL-2.0+` and the deprecated `GPL-2.0` as their successors are called."""
    base, with_, exception = name.strip().lower().partition(" with ")
    if base.endswith("+"):
        base = base[:-1] + "-or-later"
    elif re.fullmatch(r"(?:a|l)?gpl-\d\.\d", base):
        base += "-only"
    return base + with_ + exception


def _valid(stated: str) -> str | None:
    """The expression as written, single-spaced and without what closes the comment; None if it is none."""
    stated = " ".join(stated.split()).removesuffix("--").removesuffix("#").strip().rstrip(".,;")
    return stated if _parse(stated) is not None else None


def _parse(expression: str) -> "_Tree | None":
    """The tree of an SPDX expression (annex D), None when it is none. OR binds weakest, WITH strongest."""
    tokens: list[str] = []
    position = 0
    while match := _TOKEN.match(expression, position):
        tokens.append(match[1])
        position = match.end()
    if expression[position:].strip() or not 0 < len(tokens) <= MAX_TOKENS:
        return None
    tokens.reverse()
    try:
        tree = _either(tokens)
    except (ValueError, IndexError):
        return None
    return None if tokens else tree


def _either(tokens: list[str]) -> "_Tree":
    tree = _both(tokens)
    while tokens and tokens[-1].upper() == "OR":
        tokens.pop()
        tree = ("OR", tree, _both(tokens))
    return tree


def _both(tokens: list[str]) -> "_Tree":
    tree = _one(tokens)
    while tokens and tokens[-1].upper() == "AND":
        tokens.pop()
        tree = ("AND", tree, _one(tokens))
    return tree


def _one(tokens: list[str]) -> "_Tree":
    word = tokens.pop()
    if word == "(":
        tree = _either(tokens)
        if tokens.pop() != ")":
            raise ValueError(word)
        return tree
    if not _IDENTIFIER.fullmatch(word) or word.upper() in ("AND", "OR", "WITH"):
        raise ValueError(word)
    if tokens and tokens[-1].upper() == "WITH":
        tokens.pop()
        return f"{word} WITH {tokens.pop()}"
    return word


def _notice(words: str) -> str | None:
    """The licence that these words name or begin to quote."""
    if gnu := _gnu_notice(words):
        return gnu
    padded = f" {words} "
    return next(
        (name for name, phrases in licence_texts.NOTICES if any(map(padded.__contains__, phrases))), None
    )


def _gnu_notice(words: str) -> str | None:
    """A GNU licence a notice names, with its version and whether later ones are granted."""
    for name, phrases in licence_texts.GNU:
        at = next((at for phrase in phrases if (at := words.find(phrase)) >= 0), None)
        if at is None:
            continue
        near = words[max(0, at - 100) : at + 250]
        number = licence_texts.GNU_VERSION.search(near)
        later = bool(licence_texts.LATER.search(near))
        if number is None:
            return f"{name}-{'3.0' if name == 'AGPL' else '2.0'}-or-later" if later else None
        version = number[1] if "." in number[1] else f"{number[1]}.0"
        return f"{name}-{version}-{'or-later' if later else 'only'}"
    return None


def _normal(text: str) -> str:
    """Words and numbers only, in lower case: comment signs, wrapping and punctuation do not count."""
    words = b" ".join(text.encode("ascii", "replace").translate(_LETTERS).split()).decode()
    return words.replace(". ", " ").removesuffix(".").replace("licence", "license")
