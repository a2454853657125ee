"""Text of others made fit to be shown: nothing in it moves a cursor, hides or turns around."""

import unicodedata

# Cc controls, Cf formats (bidi overrides, zero widths, soft hyphens), Cs lone surrogates, Zl and Zp line ends
HARMFUL = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co"})


def inert(text: str) -> str:
    r"""The text with every such character written as an escape: \x1b, \u202e."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape(char) if is_harmful(char) else char for char in text)


def inert_lines(text: str) -> str:
    """The same of a text with lines and tabs, which stay what they are."""
    return "\n".join("\t".join(map(inert, line.split("\t"))) for line in text.split("\n"))


def is_harmful(char: str) -> bool:
    return unicodedata.category(char) in HARMFUL


def escape(char: str) -> str:
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
