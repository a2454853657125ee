"""Code that looks as if people had written it, in five languages, better and worse; always the same."""

import random
from collections.abc import Callable
from dataclasses import dataclass

NOUNS = (
    "invoice", "parcel", "tariff", "voucher", "ledger", "session", "packet", "cursor", "sensor", "ticket",
    "route", "tenant", "batch", "window", "balance", "refund", "carrier", "pallet", "region", "digest",
)  # fmt: skip
VERBS = (
    "parse", "merge", "settle", "route", "validate", "encode", "reserve", "release", "rotate", "resolve",
    "collect", "publish", "archive", "measure", "renew", "split",
)  # fmt: skip
FIELDS = ("amount", "weight", "deadline", "priority", "currency", "attempts", "checksum", "capacity")


@dataclass(frozen=True)
class Author:
    """Who writes a file; `care` in 0…1: how often they document, check, name well and stay flat."""

    dice: random.Random
    care: float

    def takes_care(self) -> bool:
        return self.dice.random() < self.care

    def words(self) -> tuple[str, str, str]:
        """A verb, what it is done to, and a property of that; of a careless one, letters."""
        if self.takes_care():
            return self.dice.choice(VERBS), self.dice.choice(NOUNS), self.dice.choice(FIELDS)
        return (
            self.dice.choice(("do", "run", "proc")),
            self.dice.choice("bcdefgh"),
            self.dice.choice("nmkxyz"),
        )


def written(language: str, number: int) -> str:
    """The text of file `number`: some four functions and a type around them."""
    dice = random.Random(f"{language} {number}")
    author = Author(dice, care=dice.betavariate(3.5, 1.0))
    noun = dice.choice(NOUNS)
    begin, function, end = WRITERS[language]
    parts = [begin(author, noun)]
    parts += [function(author, f"{noun}{ordinal}") for ordinal in range(1, dice.randint(3, 6))]
    if not author.takes_care():
        parts.append(_clutter(author, "#" if language == "python" else "//"))
    return "\n".join([*parts, end])


def _clutter(author: Author, mark: str) -> str:
    lines = [f"{mark} TODO {author.dice.choice(FIELDS)} is wrong here, see {author.dice.randint(100, 999)}"]
    lines += [f"{mark} x = {author.dice.randint(0, 9)};" for _ in range(author.dice.randint(1, 4))]
    return "\n".join([*lines, ""])


def _python_begin(author: Author, noun: str) -> str:
    doc = (
        f'"""Keep each {noun} from the moment it arrives until it is settled."""\n\n'
        if author.takes_care()
        else ""
    )
    return (
        f"{doc}from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass {noun.title()}:\n"
        f'    """One {noun} as the other side sent it."""\n\n    number: int\n'
        f"    {author.words()[2]}: float\n"
    )


def _python(author: Author, about: str) -> str:
    verb, noun, field = author.words()
    name, limit = f"{verb}_{noun}_{about}", author.dice.randint(2, 90)
    doc = f'    """The {noun}s that are worth a {verb}, by {field}; raises ValueError beyond {limit}."""\n'
    check = f'    if len({noun}s) > {limit}:\n        raise ValueError(f"{{len({noun}s)}} of {limit}")\n'
    body = f"    return sorted(each for each in {noun}s if each.{field} > {limit})\n"
    if not author.takes_care():
        deep = "".join(f"{'    ' * level}if {noun}s[{level}] > {level}:\n" for level in range(1, 7))
        body = f"{deep}{'    ' * 7}return [{noun}s[{limit}], {noun}s]\n    return []\n"
    parts = (doc if author.takes_care() else "", check if author.takes_care() else "")
    return f"\ndef {name}({noun}s, {field}={limit}):\n{''.join(parts)}{body}"


def _rust_begin(author: Author, noun: str) -> str:
    doc = f"//! Everything a {noun} goes through.\n\n" if author.takes_care() else ""
    return (
        f"{doc}use std::collections::HashMap;\n\n/// One {noun}.\n#[derive(Debug, Clone)]\npub struct "
        f"{noun.title()} {{\n    pub number: u64,\n    pub {author.words()[2]}: f64,\n}}\n"
    )


def _braces(head: str, guard: str, body: str, worse: str, indent: str = "") -> Callable[[Author, str], str]:
    """A writer of functions from templates with verb, noun, field, about, Title and limit in them."""

    def function(author: Author, about: str) -> str:
        verb, noun, field = author.words()
        limit = author.dice.randint(2, 90)
        filled = {
            "verb": verb, "noun": noun, "field": field, "about": about, "limit": limit,
            "Verb": verb.title(), "Noun": noun.title(), "About": about.title(),
        }  # fmt: skip
        doc = (
            f"{indent}/// To {verb} each {noun}: those whose {field} is above {limit}.\n"
            if author.takes_care()
            else ""
        )
        said = head.format(**filled) + (guard.format(**filled) if author.takes_care() else "")
        return f"{doc}{said}{(body if author.takes_care() else worse).format(**filled)}"

    return function


_rust = _braces(
    "pub fn {verb}_{noun}_{about}({noun}s: &[f64], {field}: usize) -> Vec<f64> {{\n",
    '    assert!({noun}s.len() > {field}, "{noun}s: {{}}", {noun}s.len());\n',
    "    {noun}s.iter().copied().filter(|each| *each > {limit}.0).collect()\n}}\n",
    "    let mut x = Vec::new();\n    for i in 0..{limit} {{\n        for j in 0..i {{\n"
    "            if i > j {{\n                if {noun}s[i] > {noun}s[j] {{\n"
    "                    x.push({noun}s[i] - {noun}s[j] + {limit}.0);\n"
    "                }}\n            }}\n        }}\n    }}\n    x\n}}\n",
)
_go = _braces(
    "func {Verb}{Noun}{About}({noun}s []float64, {field} int) ([]float64, error) {{\n",
    '    if len({noun}s) < {field} {{\n        return nil, fmt.Errorf("{noun}s: %d", len({noun}s))\n    }}\n',
    "    var kept []float64\n    for _, each := range {noun}s {{\n        if each > {limit} {{\n"
    "            kept = append(kept, each)\n        }}\n    }}\n    return kept, nil\n}}\n",
    "    x := 0.0\n    for i := range {noun}s {{\n        for j := range {noun}s {{\n"
    "            if i > j {{\n"
    "                if {noun}s[i] > {noun}s[j] {{\n                    x += {noun}s[i] * {limit}\n"
    "                }}\n            }}\n        }}\n    }}\n    return []float64{{x}}, nil\n}}\n",
)
_typescript = _braces(
    "export function {verb}{Noun}{About}({noun}s: number[], {field} = {limit}): number[] {{\n",
    "  if ({noun}s.length < {field}) {{\n    throw new RangeError(`{noun}s: ${{{noun}s.length}}`);\n  }}\n",
    "  return {noun}s.filter((each) => each > {field}).sort((one, other) => one - other);\n}}\n",
    "  let x: any = [];\n  for (let i = 0; i < {limit}; i++) {{ if ({noun}s[i] > i) {{ x.push({noun}s[i]); }}"
    " else {{ x.push({noun}s[i] + {limit}); x.push({noun}s[i] - {limit}); x.push(i); }} }}\n"
    "  return x;\n}}\n",
)
_java = _braces(
    "    public static List<Double> {verb}{Noun}{About}(List<Double> {noun}s, int {field}) {{\n",
    "        if ({noun}s.size() < {field}) {{\n"
    '            throw new IllegalArgumentException("{noun}s");\n        }}\n',
    "        return {noun}s.stream().filter(each -> each > {limit}).sorted().toList();\n    }}\n",
    "        List<Double> x = new ArrayList<>();\n        for (int i = 0; i < {limit}; i++) {{\n"
    "            for (int j = 0; j < i; j++) {{\n                if (i > j) {{\n"
    "                    if ({noun}s.get(i) > j) {{ x.add({noun}s.get(i) - {noun}s.get(j)); }}\n"
    "                }}\n            }}\n        }}\n        return x;\n    }}\n",
    indent="    ",
)
WRITERS: dict[str, tuple[Callable[[Author, str], str], Callable[[Author, str], str], str]] = {
    "python": (_python_begin, _python, ""),
    "rust": (_rust_begin, _rust, ""),
    "go": (
        lambda _, noun: f'// Package {noun} settles {noun}s.\npackage {noun}\n\nimport "fmt"\n\n'
        f"// {noun.title()} is one {noun}, as the other side sent it.\ntype {noun.title()} struct {{\n"
        f"    Number int\n    Label  string\n}}\n\n// String tells a {noun} to people.\n"
        f"func (one {noun.title()}) String() string {{\n    return fmt.Sprint(one.Number, one.Label)\n}}\n",
        _go,
        "",
    ),
    "typescript": (
        lambda _, noun: f"/** One {noun} as the page shows it. */\nexport interface {noun.title()} {{\n"
        "  number: number;\n  label: string;\n}\n",
        _typescript,
        "",
    ),
    "java": (
        lambda _, noun: "package com.example.billing;\n\nimport java.util.ArrayList;\n"
        "import java.util.List;\n\n"
        f"/** What becomes of a {noun}. */\npublic final class {noun.title()}s {{\n",
        _java,
        "}\n",
    ),
}  # fmt: skip
SUFFIXES = {"python": "py", "rust": "rs", "go": "go", "typescript": "ts", "java": "java"}
