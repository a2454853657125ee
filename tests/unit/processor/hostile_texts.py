"""Texts made to be slow to judge or to parse, of any length, in lines that no filter of lengths minds."""

from collections.abc import Callable, Iterator

EXTENSIONS = {
    "python": "py", "rust": "rs", "go": "go", "java": "java", "javascript": "js", "typescript": "ts",
    "c": "c",
    "c++": "cpp", "c#": "cs", "ruby": "rb", "php": "php", "kotlin": "kt", "swift": "swift", "scala": "scala",
    "shell": "sh", "sql": "sql", "html": "html", "css": "css", "markdown": "md", "json": "json",
    "yaml": "yaml", "toml": "toml", "xml": "xml", "ini": "ini",
}  # fmt: skip
WIDTH = 80

# One piece, repeated until the text is long enough, cut into lines of 80 characters
IN_LINES = {
    "brackets": "{[(", "round": "(", "square": "[", "curly": "{", "angle": "<", "closing": ")]}",
    "addresses": "a@a.a.a.a.", "at": "a@", "dots": "a.", "colons": "1:2:", "digits": "1.1.1.",
    "quotes": "\"'",
    "backslashes": "\\", "escaped": '\\n\\"', "comments": "/*", "docstrings": '"""', "heredoc": "<<<<<A",
    "keys": "-----BEGIN PRIVATE KEY-----", "ends": "-----END ", "assigned": "password = '",
    "urls": "a://b:c@",
    "tokens": "ghp_aaaa", "bearer": "Authorization: Bearer ", "base64": "QUJD", "escapes": "\\u0041",
    "hexadecimal": "0x41, ", "tags": "<a><b c='", "hidden": "<script><!--", "interpolated": 'f"{${`#{',
    "generics": "A<B<", "arrows": "(a)=>", "casts": "(a)(", "lambdas": "|a|", "ternary": "a?b:",
    "minus": "- -",
    "stars": "***", "regular": "/a/", "templates": "`${", "commas": "a,", "not": "not ",
    "bidi": "\u202e\u2066a",
    "combining": "a\u0301\u0301\u0301", "separators": "\u2028\u2029\x85", "percent": "%w(", "macros": "A_B(",
    "spdx": "SPDX-License-Identifier: ( OR ",
}  # fmt: skip
# Whole lines
LINES = {
    "elif": "elif a:\n", "else": "else if (a) {\n", "blank": "        \n", "preprocessor": "#if A\n#else\n",
    "macro_lines": "ABC_DEF(a, b)\n", "anchors": "a: &a [*a, *a]\n", "heads": "class ABC_DEF a\n",
    "print": "print a\n", "except": "except a, b:\n", "functions": "function f() {\n", "here": "cat <<EOF\n",
    "case": "case a in\n", "fences": "```\n", "lists": "- - - -\n", "quoted": "> > > >\n",
    "words": "a b c d e\n",
    "same_word": "word word word word\n", "imports": "import a\n", "tables": "{1, 2, 3},\n",
    "definitions": "def f(a):\n", "generic_lines": "a < b < c <\n", "labels": "a: b: c:\n",
    "todo": "# TODO a = b\n",
}  # fmt: skip


def texts(size: int) -> Iterator[tuple[str, str]]:
    """(name, text of about so many bytes) of each."""
    for name, piece in IN_LINES.items():
        yield name, _in_lines(piece, size)
    for name, line in LINES.items():
        yield name, _repeated(line, size)
    for name, make in GROWING.items():
        yield name, make(size)


def _repeated(piece: str, size: int) -> str:
    return piece * (size // len(piece.encode()))


def _in_lines(piece: str, size: int) -> str:
    line = _repeated(piece, max(WIDTH, len(piece.encode()))) + "\n"
    return _repeated(line, size)


def _staircase(size: int) -> str:
    """Blocks each in the one before, down to a hundred levels and up again."""
    down = "".join(" " * depth + "if a:\n" for depth in range(100)) + " " * 100 + "b\n"
    return _repeated(down, size)


def _numbered(size: int) -> str:
    """No line and no word twice."""
    return "".join(f"word{number} = other{number} + {number}\n" for number in range(size // 34))


def _opened_late(size: int) -> str:
    """Everything is opened at the end: what looks for the closing looks in vain each time."""
    return _repeated("x = 1\n", size // 2) + _in_lines("/* <!-- ''' \"\"\" <script ", size // 2)


def _one_word(size: int) -> str:
    return _repeated("word" * 200 + "\n", size)


def _varied_secrets(size: int) -> str:
    """Assignments whose value has to be looked at each time."""
    return "".join(
        f"api_key_{number} = 'abcDEF{number}ghi{number * 7919}JKL'\n" for number in range(size // 44)
    )


GROWING: dict[str, Callable[[int], str]] = {
    "staircase": _staircase, "numbered": _numbered, "opened_late": _opened_late, "one_word": _one_word,
    "secrets": _varied_secrets,
}  # fmt: skip
# The parsers of these languages need memory by the cube of such a text's length, and give no sign of it
DEADLY = {"python": ("comments",), "rust": ("percent",), "java": ("percent",)}
