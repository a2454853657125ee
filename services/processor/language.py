"""Which language a file is in: by name, by shebang, and by content where the name is ambiguous."""

import re

from identify import identify

from services.processor.reasons import Reason
from services.processor.values import Rejection

# identify's tag → the language we train on; the first tag of this table that a file has, wins
LANGUAGES = {
    "python": "python", "pyi": "python", "rust": "rust", "go": "go", "java": "java",
    "javascript": "javascript", "jsx": "javascript", "ts": "typescript", "tsx": "typescript",
    "c": "c", "c++": "c++", "c#": "c#", "ruby": "ruby", "php": "php",
    "kotlin": "kotlin", "swift": "swift", "scala": "scala", "shell": "shell", "sql": "sql",
    "html": "html", "css": "css", "scss": "css", "less": "css", "markdown": "markdown",
    "json": "json", "json5": "json", "yaml": "yaml", "toml": "toml", "ini": "ini", "xml": "xml",
    "java-properties": "ini", "dockerfile": "dockerfile", "makefile": "makefile", "cmake": "cmake",
}  # fmt: skip
SHEBANGS = {
    "python": "python", "pypy": "python", "node": "javascript", "nodejs": "javascript", "deno": "typescript",
    "ruby": "ruby", "php": "php", "sh": "shell", "bash": "shell", "zsh": "shell", "dash": "shell",
    "ksh": "shell", "scala": "scala", "swift": "swift", "kotlin": "kotlin",
}  # fmt: skip
CPP_ONLY = re.compile(
    r"^[ \t]{0,16}(?:class|namespace|template|using|public:|private:)\b|\bstd::|\bconstexpr\b", re.MULTILINE
)
SNIFFED = 20_000  # characters looked at where the name is ambiguous


def refuse_by_name(path: str) -> Rejection | None:
    """A refusal for a name that no text has, or that no language we train on has."""
    tags = identify.tags_from_filename(path)
    if "binary" in tags:
        return Rejection(Reason.BINARY_TYPE, _extension(path))
    if tags and _of_tags(tags) is None:
        return Rejection(Reason.UNKNOWN_LANGUAGE, _extension(path))
    return None


def detect(path: str, text: str) -> str | Rejection:
    """The language's name in lower case, or a refusal when nothing says which it is."""
    language = _of_tags(identify.tags_from_filename(path))
    if language is None:
        language = _of_shebang(text)
    if language is None:
        return Rejection(Reason.UNKNOWN_LANGUAGE, _extension(path))
    return _disambiguated(path, language, text)


def _disambiguated(path: str, language: str, text: str) -> str:
    lower = path.lower()
    if lower.endswith(".h"):
        return "c++" if CPP_ONLY.search(text, 0, SNIFFED) else "c"
    if lower.endswith(".ts") and text.lstrip()[:9].lower().startswith(("<?xml", "<!doctype")):
        return "xml"  # a translation of Qt's
    return language


def _of_tags(tags: set[str]) -> str | None:
    return next((language for tag, language in LANGUAGES.items() if tag in tags), None)


def _of_shebang(text: str) -> str | None:
    if not text.startswith("#!"):
        return None
    words = text[2:300].partition("\n")[0].split()
    programs = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
    if programs[:1] == ["env"]:
        programs = programs[1:]
    return SHEBANGS.get(programs[0].rstrip("0123456789.")) if programs else None


def _extension(path: str) -> str:
    name = path.rpartition("/")[2]
    _, dot, extension = name.rpartition(".")
    return f".{extension[:20]}" if dot else "no extension"
