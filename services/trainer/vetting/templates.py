"""Chat templates: Jinja that a tokenizer renders, in a sandbox that bounds neither time nor memory.

A template is parsed and its syntax tree searched; nothing of it is rendered. What is refused here is what no
published template needs and known bombs are made of. That a template ends cannot be proven: a process that
renders one has to be one that can be killed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser

from services.core.errors import UnsafeAdapterError

FIELD = "chat_template"
MOST_CHARACTERS = 128_000  # the longest published templates have some 30,000
LARGEST = 10**5  # number that is written out; and how often loops over what is written out run, in all
WIDE = re.compile(r"[%{][^%{}]*\d{5}")  # a format that writes something 10,000 characters wide
INSIDE = re.compile(r"__\w+__")  # __class__, __globals__, …
OUTSIDE = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


class Generation(Extension):
    """The tag that transformers adds: `{% generation %}` … `{% endgeneration %}`."""

    tags = {"generation"}  # noqa: RUF012  Jinja's interface

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def check(folder: Path, paths: Sequence[Path], configs: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises UnsafeAdapterError for a template that reaches beyond its messages, or is made to grow."""
    for path in paths:
        if path.suffix == ".jinja":
            _check(path, path.read_text(encoding="utf-8"))
    for name, config in configs.items():
        for template in _templates(config.get(FIELD)):
            _check(folder / name, template)


def _templates(field: Any) -> Iterator[str]:
    """The templates of a config's field: one, or several with their names."""
    for each in field if isinstance(field, list) else [field]:
        template = each.get("template") if isinstance(each, dict) else each
        if isinstance(template, str):
            yield template


def _check(path: Path, template: str) -> None:
    if len(template) > MOST_CHARACTERS:
        raise UnsafeAdapterError(
            f"{path}: a chat template of {len(template):,} characters, expected at most {MOST_CHARACTERS:,}"
        )
    try:
        tree = Environment(extensions=[loopcontrols, Generation]).parse(template)  # noqa: S701  not rendered
        reason = next((fault for look in LOOKS if (fault := look(tree))), None)
    except (TemplateError, RecursionError, ValueError) as exc:
        raise UnsafeAdapterError(f"{path}: a chat template that cannot be read: {exc}") from exc
    if reason is not None:
        raise UnsafeAdapterError(f"{path}: a chat template {reason}; no published one needs that")


def _reaching(tree: nodes.Template) -> str | None:
    """Other files, and the way from an object to Python's insides."""
    for found in tree.find_all(OUTSIDE):
        return f"that loads another file, in line {found.lineno}"
    for each in tree.find_all((nodes.Getattr, nodes.Const)):
        name = each.attr if isinstance(each, nodes.Getattr) else _constant(each)
        if isinstance(name, str) and INSIDE.search(name):
            return f"that reaches for {name!r}, in line {each.lineno}"
    return None


def _large(tree: nodes.Template) -> str | None:
    """Products, large numbers, wide formats: a short text becomes one that fills the memory."""
    for found in tree.find_all((nodes.Mul, nodes.Pow)):
        return f"that multiplies, in line {found.lineno}"
    for constant in tree.find_all(nodes.Const):
        value = constant.value
        if isinstance(value, int) and abs(value) > LARGEST:
            return f"with the number {value}, in line {constant.lineno}"
        if isinstance(value, str) and WIDE.search(value):
            return f"with a very wide format, in line {constant.lineno}"
    return None


def _looping(tree: nodes.Template) -> str | None:
    """Loops over what is written out, within one another."""
    waiting: list[tuple[nodes.Node, int]] = [(tree, 1)]
    while waiting:
        node, runs = waiting.pop()
        if isinstance(node, nodes.For):
            runs *= _length(node.iter)
            if runs > LARGEST:
                return f"whose loops run {runs:,} times, in line {node.lineno}"
        waiting.extend((child, runs) for child in node.iter_child_nodes())
    return None


def _doubling(tree: nodes.Template) -> str | None:
    """`x = x ~ x`: forty rounds of that are a terabyte."""
    for assigned in tree.find_all(nodes.Assign):
        target = _name(assigned.target)
        for joined in assigned.find_all((nodes.Add, nodes.Concat)) if target else ():
            parts = [_name(part) for part in joined.find_all((nodes.Name, nodes.Getattr))]
            if parts.count(target) > 1:
                return f"that doubles {target}, in line {assigned.lineno}"
    return None


LOOKS = (_reaching, _large, _looping, _doubling)


def _length(iterated: nodes.Node) -> int:
    """How often a loop over what is written out runs; 1 for one over what the template is given."""
    if isinstance(iterated, nodes.List | nodes.Tuple | nodes.Dict):
        return max(1, len(iterated.items))
    if isinstance(iterated, nodes.Call):  # range(…)
        numbers = [_constant(argument) for argument in iterated.args[:2]]
        return prod(max(1, abs(number)) for number in numbers if isinstance(number, int))
    text = _constant(iterated)
    return max(1, len(text)) if isinstance(text, str) else 1


def _constant(node: nodes.Node) -> Any:
    return node.value if isinstance(node, nodes.Const) else None


def _name(node: nodes.Node) -> str | None:
    """`text` or `namespace.text`."""
    if isinstance(node, nodes.Name | nodes.NSRef):
        return node.name + (f".{node.attr}" if isinstance(node, nodes.NSRef) else "")
    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return f"{node.node.name}.{node.attr}"
    return None
