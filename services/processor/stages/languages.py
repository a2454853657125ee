"""The languages we train on, and the groups in which rules and points treat them alike."""

CODE = frozenset(
    {
        "python", "rust", "go", "java", "javascript", "typescript", "c", "c++", "c#", "ruby", "php", "kotlin",
        "swift", "scala", "shell", "sql",
    }
)  # fmt: skip
MARKUP = frozenset({"html", "markdown", "xml"})
DATA = frozenset({"json", "yaml", "toml", "ini", "hcl"})
STYLE = frozenset({"css"})
BUILD = frozenset({"dockerfile", "makefile", "cmake"})
ALL = CODE | MARKUP | DATA | STYLE | BUILD

# What begins a comment that ends with its line
_SLASHES = (
    "rust", "go", "java", "javascript", "typescript", "c", "c++", "c#", "php", "kotlin", "swift", "scala",
)  # fmt: skip
_HASHES = ("python", "ruby", "shell", "yaml", "toml", "makefile", "cmake", "dockerfile", "hcl")
LINE_COMMENT = dict.fromkeys(_SLASHES, "//") | dict.fromkeys(_HASHES, "#") | {"sql": "--", "ini": ";"}
# What begins and what ends a comment over several lines
BLOCK_COMMENT = (
    dict.fromkeys((*_SLASHES, "css", "sql", "hcl"), ("/*", "*/"))
    | dict.fromkeys(MARKUP, ("<!--", "-->"))
    | {"ruby": ("=begin", "=end")}
)
INDENT_COLUMNS = 4  # of a nesting level
TWO_COLUMNS = frozenset({"javascript", "typescript", "ruby", "scala", "html", "xml", "css", "json", "yaml"})
