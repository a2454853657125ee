"""Which lines and blocks may be asked for."""

from services.trainer.samples.boundaries import lines_of
from services.trainer.samples.source import SampleSource, Spans, Unit
from services.trainer.suites import spans

PYTHON = '''\
import os

# a comment that says things
LIMIT = 10


def walk(folder, depth):
    """What is below it.

    Not sorted.
    """
    for name in os.listdir(folder):
        if depth > LIMIT:
            continue
        print(name)
        yield name
    return


def empty(): ...
'''
JAVA = """\
class Tree {
    private int size;

    public int grow(int by) {
        size += by;
        if (size > 10) {
            size = 10;
            log("full");
        }
        return size;
    }
}
"""


def source(text: str, judged: Spans | None = None, units: tuple[Unit, ...] = ()) -> SampleSource:
    return SampleSource(1, b"", "python", text, judged=judged, units=units)


def asked(text: str, found: list[spans.Span]) -> list[str]:
    lines = lines_of(text)
    return ["".join(lines[span.first : span.last]) for span in found]


def test_lines_are_code_of_a_usual_length() -> None:
    found = {text.strip() for text in asked(PYTHON, spans.lines(source(PYTHON)))}
    assert {"LIMIT = 10", "def walk(folder, depth):", "continue", "print(name)", "def empty(): ..."} <= found
    assert not {"import os", "# a comment that says things", '"""', ""} & found


def test_a_block_is_a_body_without_its_docstring() -> None:
    found = asked(PYTHON, spans.blocks(source(PYTHON)))
    assert [text.split("\n")[0].strip() for text in found] == [
        "for name in os.listdir(folder):",
        "if depth > LIMIT:",
    ]
    assert found[0].endswith("    return\n")
    assert found[1].endswith("yield name\n")


def test_a_block_in_braces_ends_before_the_brace() -> None:
    found = asked(JAVA, spans.blocks(source(JAVA)))
    assert '            size = 10;\n            log("full");\n' in found
    assert all(not text.rstrip().endswith("\n}") for text in found)


def test_only_what_is_judged_is_asked_for() -> None:
    start = PYTHON.index("        print(name)")
    end = start + len("        print(name)\n        yield name\n")
    judged = source(PYTHON, ((start, end),))
    assert [text.strip() for text in asked(PYTHON, spans.lines(judged))] == ["print(name)", "yield name"]
    assert spans.blocks(judged) == []
    inner = PYTHON.index("        if depth")
    assert len(spans.blocks(source(PYTHON, ((inner, end),)))) == 1


def test_blocks_lie_in_units_where_there_are_any() -> None:
    at = PYTHON.index("def empty")
    unit = Unit("function", "empty", at, len(PYTHON) - 1, 20, 20, at)
    assert spans.blocks(source(PYTHON, units=(unit,))) == []


def test_a_block_that_was_written_ends_where_it_is_indented_less() -> None:
    lines = lines_of("    a\n\n      b\n    c\n\n  d\n")
    assert spans.block_end(lines, 0) == 4
