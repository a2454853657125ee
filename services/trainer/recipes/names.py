"""The names that the lists in a recipe may hold."""

ALL_LINEAR = "all-linear"  # target_modules: every linear layer but the head
OTHERS = "*"  # language_weights: languages that are not named
# Kinds of units, as the processor cuts them
GRANULES = ("function", "method", "class", "struct", "enum", "trait", "impl", "interface", "module")
LANGUAGES = (  # as the processor names them
    "python", "rust", "go", "java", "javascript", "typescript", "c", "c++", "c#", "ruby", "php", "kotlin",
    "swift", "scala", "shell", "sql", "html", "markdown", "xml", "json", "yaml", "toml", "ini", "hcl", "css",
    "dockerfile", "makefile", "cmake",
)  # fmt: skip
