"""Which language a file is in: by name, by shebang, and by content where the name is ambiguous.

Names are looked up in the table of the `identify` library, and first in our own additions to it.
"""

from functools import lru_cache

import re2
from identify import identify

from services.processor.reasons import Reason
from services.processor.values import Rejection

# identify's tag → the language we train on; the first tag of this table that a file has, wins
LANGUAGES = {
    "python": "python", "pyi": "python", "rust": "rust", "go": "go", "java": "java",
    "javascript": "javascript", "jsx": "javascript", "ts": "typescript", "tsx": "typescript",
    "c": "c", "c++": "c++", "c#": "c#", "ruby": "ruby", "php": "php",
    "kotlin": "kotlin", "swift": "swift", "scala": "scala", "fish": None, "shell": "shell", "sql": "sql",
    "html": "html", "css": "css", "scss": "css", "less": "css", "markdown": "markdown",
    "json": "json", "json5": "json", "yaml": "yaml", "toml": "toml", "ini": "ini", "xml": "xml",
    "java-properties": "ini", "terraform": "hcl", "hcl": "hcl",
    "dockerfile": "dockerfile", "makefile": "makefile", "cmake": "cmake",
}  # fmt: skip
# What identify does not know, after github-linguist's languages.yml
EXTENSIONS = {
    "mts": "typescript", "cts": "typescript", "es6": "javascript", "jsm": "javascript",
    "h++": "c++", "ksh": "shell", "command": "shell", "php3": "php", "php4": "php",
    "mdown": "markdown", "mkd": "markdown", "mkdn": "markdown", "jsonc": "json", "editorconfig": "ini",
    "pgsql": "sql", "psql": "sql", "mysql": "sql", "ddl": "sql", "dml": "sql", "ktm": "kotlin",
    "ru": "ruby", "podspec": "ruby", "dockerfile": "dockerfile",
}  # fmt: skip
NAMES = {
    "Podfile": "ruby",
    "Brewfile": "ruby",
    "Fastfile": "ruby",
    ".eslintrc": "json",
    ".prettierrc": "json",
}
# Known, and yet not trained on: the tag that decides, and what a person should read
NOT_TRAINED_ON = {
    "jupyter": "a notebook: its code lies among outputs, as JSON",
    "svg": "a drawing: paths of numbers, as XML",
    "objective-c": "Objective-C, MATLAB or Mercury",
    "objective-c++": "Objective-C++",
}
SHEBANGS = {
    "python": "python", "pypy": "python", "node": "javascript", "nodejs": "javascript", "deno": "typescript",
    "bun": "typescript", "ts-node": "typescript", "tsx": "typescript", "ruby": "ruby", "php": "php",
    "sh": "shell", "bash": "shell", "zsh": "shell", "dash": "shell", "ksh": "shell", "ash": "shell",
    "scala": "scala", "swift": "swift", "kotlin": "kotlin", "make": "makefile",
}  # fmt: skip

SNIFFED = 20_000  # characters looked at where the name is ambiguous
OBJECTIVE_C = re2.compile(r"(?m)^[ \t]*(?:@interface|@protocol|@property|@end|@class|#import)\b")
CPP_ONLY = re2.compile(
    r"(?m)^[ \t]*(?:(?:class|namespace|using|public:|private:|protected:)(?:\s|$)|template\s*<)"
    r"|\bstd::|\bconstexpr\b|\bnullptr\b|^#\s*include\s*<[a-z_]+>"
)
C_ONLY = re2.compile(r"(?m)^#[ \t]*(?:include|define|if|ifdef|ifndef|pragma)\b")
SECTION = re2.compile(r"(?m)^\[[^\]\n]+\][ \t]*$")


def refuse_by_name(path: str) -> Rejection | None:
    """A refusal for a name that no text has, or that no language we train on has."""
    return _of_name(path.rpartition("/")[2])[1]


def detect(path: str, text: str) -> str | Rejection:
    """The language's name in lower case, or a refusal when nothing says which it is."""
    language, refused = _of_name(path.rpartition("/")[2])
    if refused is not None:
        return refused
    extension = _extension(path)
    if sniff := AMBIGUOUS.get(extension.lower()):
        language = sniff(text[:SNIFFED])
    elif language is None:
        language = _of_shebang(text)
    elif language not in ("xml", "html", "markdown") and text.startswith("<?xml"):
        language = "xml"  # OpenCoder refuses what calls itself something else
    if language is None:
        return Rejection(Reason.UNKNOWN_LANGUAGE, extension)
    return language


@lru_cache(maxsize=8192)
def _of_name(name: str) -> tuple[str | None, Rejection | None]:
    """Language and refusal as far as a file's name says; neither when its content must say."""
    stem, dot, extension = name.rpartition(".")
    if known := NAMES.get(name) or (EXTENSIONS.get(extension.lower()) if dot else None):
        return known, None
    tags = identify.tags_from_filename(name)
    if "binary" in tags:
        return None, Rejection(Reason.BINARY_TYPE, _extension(name))
    if said := next((NOT_TRAINED_ON[tag] for tag in NOT_TRAINED_ON if tag in tags), None):
        return None, Rejection(Reason.UNKNOWN_LANGUAGE, f"{_extension(name)}: {said}")
    if f".{extension.lower()}" in AMBIGUOUS and stem:
        return None, None
    language = next((LANGUAGES[tag] for tag in LANGUAGES if tag in tags), None)
    if tags and language is None:
        return None, Rejection(Reason.UNKNOWN_LANGUAGE, _extension(name))
    return language, None


def _header(text: str) -> str | None:
    """`.h`: Objective-C, C++ or C."""
    if ("@" in text or "#import" in text) and OBJECTIVE_C.search(text):  # most have neither
        return None
    return "c++" if CPP_ONLY.search(text) else "c"


def _typescript(text: str) -> str:
    """`.ts`: TypeScript, or a translation of Qt's; MPEG streams are binary and never come here."""
    return "xml" if text.lstrip()[:9].lower().startswith(("<?xml", "<!doctype", "<ts ")) else "typescript"


def _included(text: str) -> str | None:
    """`.inc`: of PHP, C++, C, or of assemblers and Pascal, which we do not train on."""
    if "<?php" in text[:2000]:
        return "php"
    return _header(text) if C_ONLY.search(text) else None


def _configuration(text: str) -> str | None:
    """`.cfg`, `.conf`: INI when it has a section's head; every program's own format otherwise."""
    return "ini" if SECTION.search(text) else None


AMBIGUOUS = {
    ".h": _header,
    ".ts": _typescript,
    ".inc": _included,
    ".cfg": _configuration,
    ".conf": _configuration,
}


def _of_shebang(text: str) -> str | None:
    if not text.startswith("#!"):
        return None
    words = text[2:300].partition("\n")[0].split()
    programs = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
    if programs[:1] == ["env"]:
        programs = [program for program in programs[1:] if "=" not in program]
    return SHEBANGS.get(programs[0].rstrip("0123456789.")) if programs else None


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    _, dot, extension = name.rpartition(".")
    return f".{extension[:20]}" if dot else "no extension"
