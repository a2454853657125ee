"""What one node defines: kind, name and body of a unit, or nothing. Here the grammars differ."""

from collections.abc import Callable

from tree_sitter import Language, Node

from services.processor.stages.grammars import Grammar

MAX_NAME_BYTES = 200
MAX_DECLARATORS = 50  # nested in one C declaration
FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
WRAPPED_DECLARATORS = frozenset({"parenthesized_declarator", "reference_declarator", "attributed_declarator"})
MISREAD_TYPES = {"class_specifier": "class", "struct_specifier": "struct", "union_specifier": "struct"}
GO_TYPES = {"struct_type": "struct", "interface_type": "interface"}


# Kind, name, and the body where other units may lie. An empty name: not a unit, but its body is looked into.
Definition = tuple[str, bytes, Node | None]
Define = Callable[[Node, bytes], Definition | None]


def definer(grammar: Grammar, language: Language, node: str) -> Define:
    """The function that reads nodes of this name as definitions."""
    kind = grammar.units[node]
    if grammar.module in ("tree_sitter_c", "tree_sitter_cpp") and node == "function_definition":
        return lambda found, data: _c_function(found, kind, data)
    if special := _OF_NODE.get(node):
        return lambda found, data: special(found, kind, data)
    if grammar.unnamed or grammar.keywords or grammar.bodies:
        return lambda found, data: _loose(found, kind, data, grammar)
    return _plain(language, kind, bodiless=node in grammar.bodiless)


def _plain(language: Language, kind: str, *, bodiless: bool) -> Define:
    """Of most nodes: a field for the name, another for the body."""
    name_field, body_field = language.field_id_for_name("name"), language.field_id_for_name("body")
    assert name_field is not None
    assert body_field is not None

    def define(node: Node, data: bytes) -> Definition | None:
        body = node.child_by_field_id(body_field)
        if body is None and not bodiless:
            return None
        name = node.child_by_field_id(name_field)
        return kind, b"" if name is None else data[name.start_byte : name.end_byte], body

    return define


def _loose(node: Node, kind: str, data: bytes, grammar: Grammar) -> Definition | None:
    """Of grammars that share a node among kinds, or name neither bodies nor the special members."""
    body = node.child_by_field_name("body")
    if body is None and grammar.bodies:
        last = node.named_child(node.named_child_count - 1) if node.named_child_count else None
        body = last if last is not None and last.type in grammar.bodies else None
    if body is None and node.type not in grammar.bodiless:
        return None
    special = grammar.unnamed.get(node.type)
    name = None if special in ("init", "deinit", "operator") else node.child_by_field_name("name")
    if name is None:
        return None if special is None else (kind, special.encode(), body)
    if grammar.keywords:
        for word in data[node.start_byte : name.start_byte].split():
            kind = grammar.keywords.get(word, kind)
    return kind, data[name.start_byte : name.end_byte], body


def _go_type(node: Node, _kind: str, data: bytes) -> Definition | None:
    body, name = node.child_by_field_name("type"), node.child_by_field_name("name")
    kind = None if body is None else GO_TYPES.get(body.type)
    if kind is None or name is None:
        return None
    return kind, data[name.start_byte : name.end_byte], None


def _rust_impl(node: Node, kind: str, data: bytes) -> Definition | None:
    """Named `Trait for Type`, or `Type` alone."""
    body, of, trait = (node.child_by_field_name(field) for field in ("body", "type", "trait"))
    if body is None or of is None:
        return None
    name = data[of.start_byte : of.end_byte]
    if trait is not None:
        name = data[trait.start_byte : trait.end_byte] + b" for " + name
    return kind, b" ".join(name.split()), body


def _value(node: Node, kind: str, data: bytes) -> Definition | None:
    """A function or class named by assigning it: `const f = () => {}`, `f = function () {}`."""
    name_field, value_field = _VALUE_FIELDS[node.type]
    value = node.child_by_field_name(value_field)
    if value is None or value.type not in FUNCTION_VALUES:
        if value is None or value.type != "class":
            return None
        kind = "class"
    name, body = _any_of(node, name_field), value.child_by_field_name("body")
    if name is not None and name.type == "member_expression":
        name = name.child_by_field_name("property")
    if name is None or body is None or name.type.endswith("_pattern"):
        return None
    return kind, data[name.start_byte : name.end_byte].strip(b"\"'"), body


def _any_of(node: Node, fields: tuple[str, ...]) -> Node | None:
    return next((found for field in fields if (found := node.child_by_field_name(field)) is not None), None)


def _c_function(node: Node, kind: str, data: bytes) -> Definition | None:
    """Named by the innermost declarator; the last part of a qualified name, which makes it a method."""
    body, name = node.child_by_field_name("body"), node.child_by_field_name("declarator")
    if body is None or name is None:
        return None
    if name.type == "identifier":  # without parameters: `class EXPORT_MACRO Name : Base {…}` misread
        declared = node.child_by_field_name("type")
        kind = "" if declared is None else MISREAD_TYPES.get(declared.type, "")
        return kind, data[name.start_byte : name.end_byte] if kind else b"", body
    for _ in range(MAX_DECLARATORS):
        inner = name.child_by_field_name("declarator")
        if inner is None:
            what = name.type
            if what == "qualified_identifier":
                kind, inner = "method", name.child_by_field_name("name")
            elif what in ("template_function", "template_method"):
                inner = name.child_by_field_name("name")
            elif what in WRAPPED_DECLARATORS:
                inner = name.named_child(0)
        elif inner.type == "abstract_function_declarator":  # operator int()
            return kind, data[name.start_byte : inner.start_byte].strip(), body
        if inner is None:
            return kind, data[name.start_byte : name.end_byte], body
        name = inner
    return None


def _c_type(node: Node, kind: str, data: bytes) -> Definition | None:
    """Its own name, or that which a typedef gives it."""
    body, name = node.child_by_field_name("body"), node.child_by_field_name("name")
    if body is None:
        return None
    if name is None and (parent := node.parent) is not None and parent.type == "type_definition":
        name = parent.child_by_field_name("declarator")
    if name is not None and name.type == "template_type":  # a specialisation
        name = name.child_by_field_name("name")
    if name is None:
        return kind, b"", body
    return kind, data[name.start_byte : name.end_byte].lstrip(b"* "), body


_VALUE_FIELDS = {
    "variable_declarator": (("name",), "value"),
    "assignment_expression": (("left",), "right"),
    "pair": (("key",), "value"),
    "field_definition": (("property",), "value"),
    "public_field_definition": (("name",), "value"),
}
_OF_NODE: dict[str, Callable[[Node, str, bytes], Definition | None]] = {
    **dict.fromkeys(_VALUE_FIELDS, _value),
    "impl_item": _rust_impl,
    "type_spec": _go_type,
    "struct_specifier": _c_type,
    "union_specifier": _c_type,
    "enum_specifier": _c_type,
    "class_specifier": _c_type,
}
