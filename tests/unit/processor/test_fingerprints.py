"""Two units in, one number or two out."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.stages import fingerprints, units
from services.processor.values import Rejection, Unit

PYTHON = '''def merge(left, right, key=None):
    """Join two sorted lists."""
    merged, at = [], 0
    for item in left:  # stable
        while at < len(right) and key(right[at]) < key(item):
            merged.append(right[at])
            at += 1
        merged.append(item)
    return merged + right[at:]
'''
PYTHON_AGAIN = """def merge( left,right,key = None ):
    'Both must be sorted.'
    # left first
    merged, at = [], 0

    for item in left:
            while at<len(right) and key( right[at] ) < key(item):
                    merged.append(right[at])
                    at += 1
            merged.append(item)
    return merged+right[at:]
"""
RUST = """fn merge(left: &[u32], right: &[u32]) -> Vec<u32> {
    // stable
    let (mut merged, mut at) = (Vec::new(), 0);
    for item in left { /* one by one */
        while at < right.len() && right[at] < *item { merged.push(right[at]); at += 1; }
        merged.push(*item);
    }
    merged.extend_from_slice(&right[at..]);
    merged
}
"""
RUST_AGAIN = """fn merge(left: &[u32], right: &[u32]) -> Vec<u32>
{
    let (mut merged, mut at) = (Vec::new(), 0); // what comes out
    for item in left {
        while at < right.len() && right[at] < *item {
            merged.push(right[at]);
            at += 1;
        }
        merged.push(*item); /* never
                               lost */
    }
    merged.extend_from_slice(&right[at..]); merged
}
"""
SHELL = """backup() {
  # all of it
  for folder in "$@"; do
    archive="/backup/${folder##*/}-$(date +%F).tar.gz"  # one a day
    tar --create --gzip --file "$archive" --directory "${folder%/*}" "${folder##*/}"
    [ $# -gt 1 ] && echo "done: $archive"
  done
  find /backup -name '*.tar.gz' -mtime +30 -delete
}
"""


def fingerprint(language: str, text: str) -> int | None:
    found = units.split(language, text)
    assert not isinstance(found, Rejection)
    return found[0].fingerprint


@pytest.mark.parametrize(
    ("language", "one", "two"),
    [
        ("python", PYTHON, PYTHON_AGAIN),
        ("rust", RUST, RUST_AGAIN),
        ("shell", SHELL, SHELL.replace("  # one a day", "").replace("  # all of it\n", "")),
    ],
)
def test_layout_comments_and_docstrings_do_not_matter(language: str, one: str, two: str) -> None:
    """Wherever the unit stands: what is around it does not matter either."""
    number = fingerprint(language, one)
    assert number is not None
    assert fingerprint(language, two) == number
    assert fingerprint(language, two.replace("\n", "\r\n")) == number


@pytest.mark.parametrize(
    ("language", "text", "old", "new"),
    [
        ("python", PYTHON, "merged", "joined"),
        ("python", PYTHON, "at += 1", "at += 2"),
        ("rust", RUST, "&right", "&left"),
        ("shell", SHELL, "##*/", "#*/"),
        ("shell", SHELL, "$# -gt 1", "$# -gt 2"),
    ],
)
def test_names_and_code_matter(language: str, text: str, old: str, new: str) -> None:
    """Also where a sign in it begins comments elsewhere."""
    assert fingerprint(language, text.replace(old, new)) != fingerprint(language, text)


def test_what_is_small_has_none() -> None:
    """Fewer than five lines, or fewer than fifty tokens once comments and docstrings are off."""
    four_lines = "\n".join(PYTHON.splitlines()[:2]) + "\n    return sorted([*left, *right], key=key)\n"
    assert fingerprint("python", four_lines + "    " + "x" * 300 + "\n") is None
    assert fingerprint("python", 'def f():\n    """' + "word\n" * 90 + '"""\n    return 1\n') is None
    assert fingerprint("python", "def f():\n" + "    # a long comment\n" * 90 + "    return 1\n") is None


def test_a_string_that_is_assigned_is_code() -> None:
    """A docstring begins its line."""
    body = '    query = """{}"""\n' + "".join(f"    run(query, {n}, table=tables[{n}])\n" for n in range(9))
    one, two = (f"def f(tables):\n{body.format(table)}" for table in ("SELECT 1", "SELECT 2"))
    assert fingerprint("python", one) != fingerprint("python", two)


def test_numbers_are_those_stored() -> None:
    """A change here must raise FINGERPRINT_VERSION: stored units would be compared in vain."""
    assert fingerprints.FINGERPRINT_VERSION == 1
    assert fingerprint("python", PYTHON) == PYTHON_NUMBER
    assert fingerprint("rust", RUST) == RUST_NUMBER


PYTHON_NUMBER, RUST_NUMBER = -865429150396477148, 4631924412154923048


def test_units_in_units_are_looked_at_within_bounds() -> None:
    """A hostile text piles them up; those that are left out have none."""
    text = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(80)) + " " * 80 + "x = 1\n" * 1
    text += "".join(f"{' ' * 80}y = {number}\n" for number in range(200))
    found = units.split("python", text)
    assert not isinstance(found, Rejection)
    known = [unit.fingerprint is not None for unit in found]
    assert known[:5] == [True] * 5
    assert not all(known)
    assert len(found) == 80


@pytest.mark.parametrize(
    "text", ["/*" * 500_000, "/" * 1_000_000, "# " * 500_000, '"""' * 300_000, ":\n" * 500_000]
)
@pytest.mark.parametrize("language", ["python", "rust", "shell"])
def test_texts_made_to_be_slow_are_not(language: str, text: str) -> None:
    """A megabyte of marks, in a unit as long as the text."""
    begun = time.process_time()
    fingerprints.of_units(language, text.encode(), [(0, len(text), 9)] * 3)
    assert time.process_time() - begun < 2


@given(st.text(alphabet=" \t\nab#/*\"':=\\", max_size=200), st.sampled_from(["python", "rust", "shell"]))
def test_any_text_has_the_same_number_twice(text: str, language: str) -> None:
    """And never raises; lines more or fewer between its lines change nothing."""
    data = (text + "\n" + "x = 1; y = 2\n" * 30).encode()
    (number,) = fingerprints.of_units(language, data, [(0, len(data), 9)])
    assert fingerprints.of_units(language, data, [(0, len(data), 9)]) == [number]
    assert number is None or -(2**63) <= number < 2**63


def test_a_unit_tells_its_number_through_msgpack() -> None:
    """Signed, as PostgreSQL's bigint is."""
    import msgspec

    unit = Unit("function", "f", 0, 9, 1, 2, 0, -(2**63))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(unit), type=Unit) == unit
