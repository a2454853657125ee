"""Regular expressions over lines of code: each begins with a newline, which `re` finds at memchr's speed,
and repeats without giving back or within bounds, so that each is linear in the text.
"""

import re

MODIFIERS = r"(?:[a-z]{2,12}+[ ]){0,4}?"
DEFINITION = {
    "python": re.compile(r"\n(?:async )?(?:def|class) "),
    "ruby": re.compile(r"\n(?:def|class|module) "),
    "go": re.compile(r"\n(?:func|type)[ (]"),
    "shell": re.compile(r"\n(?:function \w|[\w-]{1,80}+ ?\(\))"),
    "sql": re.compile(r"\n(?:create|alter|select|insert|update|delete|with)\b", re.IGNORECASE),
    "rust": re.compile(
        r"\n(?:pub(?:\([a-z:]{1,40}+\))? )?(?:(?:async|unsafe|const|extern) ){0,3}"
        r"(?:fn|struct|enum|trait|impl|mod|macro_rules!)\b"
    ),
    "kotlin": re.compile(rf"\n{MODIFIERS}(?:fun|class|interface|object|typealias)\b"),
    "swift": re.compile(rf"\n{MODIFIERS}(?:func|class|struct|enum|protocol|extension|init)\b"),
    "scala": re.compile(rf"\n{MODIFIERS}(?:def|class|trait|object)\b"),
    "php": re.compile(rf"\n{MODIFIERS}(?:function|class|interface|trait)\b"),
}
# A line that ends with a brace
CONTROL = re.compile(
    r"(?:\}[ ]?)?(?:if|else|for|while|switch|catch|do|try|match|when|return|synchronized|using|case)\b"
)
# What tells of checks beside assertions, whose names all hold "assert"
RAISES = {
    "python": ("\nraise ",),
    "rust": ("panic!", "Err("),
    "go": ("return err", "t.Fatal"),
    "ruby": ("raise ", "expect"),
    "shell": ("exit ",),
    "c": ("return -",),
    "c++": ("throw ", "EXPECT_"),
    "swift": ("throw ", "guard "),
} | dict.fromkeys(("java", "javascript", "typescript", "c#", "php", "kotlin", "scala"), ("throw ",))
COMMENTED_OUT = re.compile(
    r"\n(?:#|//) ?(?=[\w.])(?:[\w.]{1,60}+(?: ?\+?= ?\S|\([^\n]{0,200}?\);?(?=\n))|"
    r"(?:if|for|while|return|import)\b[^\n]{0,200}?[:;{)](?=\n))"
)
# Numbers, signs and brackets, or strings: all that ends with a comma
TABLE_LINE = re.compile(r"\n(?:[-+\d.xXa-fA-F{}()\[\] ]|,(?!\n))*+,(?=\n)|\n[\"'][^\n]*+(?<=[\"'],)(?=\n)")
HEX_WORD = re.compile(r"0[xX][0-9a-fA-F]++")
DOUBLE_QUOTED = re.compile(r'"[^"\n]*+"')
SINGLE_QUOTED = re.compile(r"'[^'\n]*+'")
QUOTES_SINGLY = frozenset({"python", "javascript", "typescript", "ruby", "php", "shell", "sql"})
