"""The table of languages: which nodes of each tree-sitter grammar are units, and where to look for them.

What counts as a definition follows the grammars' own `queries/tags.scm` where they have one. The walk
of units.py descends into `containers` and `wrappers` always, into everything else only where one of the
`signals` lies: the bytes that every unit inside a function begins with. So most of a tree is never visited.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Grammar:
    """What the table says of a language, in the names of its grammar's nodes."""

    module: str
    units: dict[str, str]  # node → kind of unit
    signals: tuple[bytes, ...]  # regular expressions; a literal prefix makes the search fast
    entry: str = "language"
    containers: dict[str, str] = field(
        default_factory=dict
    )  # node → kind that owns what is in it; "": as outside
    wrappers: frozenset[str] = frozenset()  # node that adds lead to the unit in it: decorators, export
    widening: frozenset[str] = frozenset()  # wrapper that is part of the unit itself: template<…>, typedef
    leading: frozenset[str] = frozenset({"comment"})
    gated: frozenset[str] = frozenset()  # units and wrappers looked at only where a signal lies in them
    bodiless: frozenset[str] = frozenset()  # units that are whole without a body
    bodies: frozenset[str] = frozenset()  # nodes that are bodies, where the grammar has no field for them
    unnamed: dict[str, str] = field(default_factory=dict)  # node → name of a unit that has no name of its own
    keywords: dict[bytes, str] = field(
        default_factory=dict
    )  # word before the name → kind, where nodes are shared
    is_curly: bool = False  # `) {` and `=>` are signals, and not all of them name something


PREPROCESSOR = dict.fromkeys(
    ("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"), ""
)
DEFINITION_OF_TYPE = rb"\s{1,16}+[^;(){}=]{0,200}+\{"  # bounded, hence linear

_ASSIGNED = frozenset({"variable_declarator", "assignment_expression", "pair", "field_definition"})
_JAVASCRIPT = Grammar(
    "tree_sitter_javascript",
    units={
        "function_declaration": "function", "generator_function_declaration": "function",
        "function_expression": "function", "generator_function": "function",
        "variable_declarator": "function", "assignment_expression": "function", "pair": "function",
        "method_definition": "method", "field_definition": "method",
        "class_declaration": "class", "class": "class",
    },
    signals=(rb"function\b", rb"=>", rb"class\b", rb"\)\s{0,40}+\{"),
    containers={"class_body": "class"},
    wrappers=frozenset({"export_statement"}),
    widening=frozenset({"lexical_declaration", "variable_declaration"}),
    gated=_ASSIGNED | {"lexical_declaration", "variable_declaration"},
    is_curly=True,
)  # fmt: skip
_TYPESCRIPT = Grammar(
    "tree_sitter_typescript",
    entry="language_typescript",
    units={node: kind for node, kind in _JAVASCRIPT.units.items() if node != "field_definition"}
    | {
        "public_field_definition": "method", "abstract_class_declaration": "class",
        "interface_declaration": "interface", "enum_declaration": "enum", "internal_module": "module",
        "module": "module",
    },
    signals=(*_JAVASCRIPT.signals, rb"interface ", rb"enum ", rb"namespace "),
    containers={"class_body": "class"},
    wrappers=frozenset({"export_statement", "ambient_declaration", "expression_statement"}),
    widening=_JAVASCRIPT.widening,
    leading=frozenset({"comment", "decorator"}),
    gated=(_JAVASCRIPT.gated | {"public_field_definition", "expression_statement"}) - {"field_definition"},
    is_curly=True,
)  # fmt: skip
_C = Grammar(
    "tree_sitter_c",
    units={
        "function_definition": "function", "struct_specifier": "struct", "union_specifier": "struct",
        "enum_specifier": "enum",
    },
    signals=tuple(word + rb"\b" + DEFINITION_OF_TYPE for word in (b"struct", b"union", b"enum")),
    containers=PREPROCESSOR
    | {
        "linkage_specification": "", "declaration_list": "",
        "compound_statement": "", "labeled_statement": "",  # what a macro before a class makes of its body
    },
    widening=frozenset({"type_definition"}),
)  # fmt: skip

GRAMMARS = {
    "python": Grammar(
        "tree_sitter_python",
        units={"function_definition": "function", "class_definition": "class"},
        signals=(rb"def ", rb"class "),
        wrappers=frozenset({"decorated_definition"}),
        leading=frozenset({"comment", "decorator"}),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        units={
            "function_item": "function", "struct_item": "struct", "union_item": "struct", "enum_item": "enum",
            "trait_item": "trait", "impl_item": "impl", "mod_item": "module",
        },
        signals=(rb"fn ", rb"struct ", rb"enum ", rb"impl\b", rb"trait "),
        containers={"declaration_list": "", "foreign_mod_item": ""},
        leading=frozenset({"line_comment", "block_comment", "attribute_item"}),
        bodiless=frozenset({"struct_item"}),
    ),
    "go": Grammar(
        "tree_sitter_go",
        units={"function_declaration": "function", "method_declaration": "method", "type_spec": "struct"},
        signals=(rb"type ",),
        widening=frozenset({"type_declaration"}),
    ),
    "java": Grammar(
        "tree_sitter_java",
        units={
            "method_declaration": "method", "constructor_declaration": "method",
            "compact_constructor_declaration": "method", "class_declaration": "class",
            "record_declaration": "class", "enum_declaration": "enum", "interface_declaration": "interface",
            "annotation_type_declaration": "interface",
        },
        signals=(rb"class ", rb"record ", rb"new [^;{}]{0,400}+\{"),  # local enums and interfaces: too rare
        containers={
            "class_body": "class", "interface_body": "", "enum_body": "", "enum_body_declarations": "",
            "enum_constant": "", "annotation_type_body": "",
        },
        leading=frozenset({"line_comment", "block_comment"}),
    ),
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "c": _C,
    "c++": Grammar(
        "tree_sitter_cpp",
        units=_C.units | {"class_specifier": "class", "namespace_definition": "module"},
        signals=(*_C.signals, rb"class\b" + DEFINITION_OF_TYPE),
        containers=_C.containers | {"field_declaration_list": "class", "friend_declaration": ""},
        widening=frozenset({"type_definition", "template_declaration"}),
    ),
    "c#": Grammar(
        "tree_sitter_c_sharp",
        units={
            "method_declaration": "method", "constructor_declaration": "method",
            "destructor_declaration": "method", "operator_declaration": "method",
            "conversion_operator_declaration": "method", "local_function_statement": "function",
            "class_declaration": "class", "record_declaration": "class", "struct_declaration": "struct",
            "enum_declaration": "enum", "interface_declaration": "interface",
            "namespace_declaration": "module",
        },
        signals=(rb"\)\s{0,200}+\{", rb"\)\s{0,200}+=>"),
        containers={
            "preproc_if": "", "preproc_else": "", "preproc_elif": "", "declaration_list": "",
            "file_scoped_namespace_declaration": "",
        },
        bodiless=frozenset({"record_declaration"}),
        unnamed={"operator_declaration": "operator", "conversion_operator_declaration": "operator"},
        keywords={b"struct": "struct"},
        is_curly=True,
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        units={"method": "function", "singleton_method": "method", "class": "class", "module": "module"},
        signals=(rb"def ", rb"class ", rb"module "),
        containers={"body_statement": "", "singleton_class": "class"},
        bodiless=frozenset({"method", "singleton_method", "class", "module"}),  # an empty body has no node
    ),
    "php": Grammar(
        "tree_sitter_php",
        entry="language_php",
        units={
            "function_definition": "function", "method_declaration": "method", "class_declaration": "class",
            "interface_declaration": "interface", "trait_declaration": "trait", "enum_declaration": "enum",
            "namespace_definition": "module",
        },
        signals=(rb"function ", rb"class ", rb"interface ", rb"trait "),
        containers={"namespace_definition": "", "declaration_list": "", "enum_declaration_list": ""},
    ),
    "kotlin": Grammar(
        "tree_sitter_kotlin",
        units={
            "function_declaration": "function", "secondary_constructor": "method",
            "class_declaration": "class", "object_declaration": "class", "companion_object": "class",
        },
        signals=(rb"fun ", rb"class ", rb"object ", rb"interface "),
        containers={"class_body": "class", "enum_class_body": "class"},
        leading=frozenset({"line_comment", "block_comment"}),
        bodiless=frozenset({"class_declaration", "object_declaration", "companion_object"}),
        bodies=frozenset({"function_body", "class_body", "enum_class_body", "block"}),
        unnamed={"secondary_constructor": "constructor", "companion_object": "Companion"},
        keywords={b"enum": "enum", b"interface": "interface"},
    ),
    "swift": Grammar(
        "tree_sitter_swift",
        units={
            "function_declaration": "function", "init_declaration": "method", "deinit_declaration": "method",
            "class_declaration": "class", "protocol_declaration": "interface",
        },
        signals=(rb"func ", rb"struct ", rb"enum ", rb"class "),
        containers={"class_body": "class", "enum_class_body": "class", "protocol_body": "class"},
        leading=frozenset({"comment", "multiline_comment"}),
        unnamed={"init_declaration": "init", "deinit_declaration": "deinit"},
        keywords={b"struct": "struct", b"enum": "enum", b"extension": "impl"},
    ),
    "scala": Grammar(
        "tree_sitter_scala",
        units={
            "function_definition": "function", "class_definition": "class", "object_definition": "class",
            "package_object": "module", "trait_definition": "trait", "enum_definition": "enum",
        },
        signals=(rb"def ", rb"class ", rb"object ", rb"trait "),
        containers={
            "template_body": "class", "with_template_body": "class", "enum_body": "class",
            "extension_definition": "", "package_clause": "",
        },
        bodiless=frozenset({"class_definition", "object_definition", "trait_definition"}),
        leading=frozenset({"comment", "block_comment"}),
    ),
    "shell": Grammar(
        "tree_sitter_bash", units={"function_definition": "function"}, signals=(rb"\(\)", rb"function ")
    ),
}  # fmt: skip
