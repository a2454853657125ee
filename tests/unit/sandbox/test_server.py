"""What the server takes for a program, and where it listens."""

import socket

import pytest

from services.core.errors import SandboxError
from services.core.sandbox import Program
from services.sandbox.server import listen, program_of

FIELDS = {"key": "a", "code": "", "test": "", "entry_point": "f"}


def test_a_program_is_what_its_fields_say():
    assert program_of({**FIELDS, "timeout": 2}) == Program("a", "", "", "f", timeout=2)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ([], "object"),
        ({**FIELDS, "shell": "x"}, "shell"),
        ({"key": "a"}, "incomplete"),
        ({**FIELDS, "code": 1}, "code"),
        ({**FIELDS, "style": "exec"}, "exec"),
        ({**FIELDS, "timeout": 0}, "timeout"),
        ({**FIELDS, "timeout": True}, "timeout"),
        ({**FIELDS, "timeout": 1e9}, "timeout"),
        ({**FIELDS, "timeout": float("nan")}, "timeout"),
    ],
)
def test_what_is_wrong_is_named(sent, said):
    with pytest.raises(ValueError, match=said):
        program_of(sent)


def test_a_socket_that_nobody_serves_is_replaced(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(path))
    with listen(path):
        assert path.is_socket()


def test_a_socket_that_is_served_is_left_alone(tmp_path):
    path = tmp_path / "socket"
    with listen(path), pytest.raises(SandboxError, match="served already"):
        listen(path)


def test_a_path_too_long_is_named(tmp_path):
    with pytest.raises(SandboxError, match="no socket can be made"):
        listen(tmp_path / ("x" * 120))
