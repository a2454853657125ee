"""What a program finds in its cage, told by programs themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.sandbox import isolation
from services.sandbox.cage import ENVIRONMENT


@pytest.fixture
def found(judged):
    """`found(statements)`: what they leave in `out`, as a program in a cage has it."""

    def run(statements: str, **options) -> str:
        body = "".join(f"    {line}\n" for line in statements.splitlines())
        code = f"def f():\n    import os, socket, sys\n    out = None\n{body}    return repr(out)\n"
        result = judged(code, "def check(c): raise ValueError(c())", **options).result
        assert result.startswith("failed: "), result
        return result.removeprefix("failed: ")

    return run


def error(statement: str) -> str:
    return f"try:\n  out = {statement}\nexcept OSError as exc:\n  out = exc.errno"


def test_no_variable_of_ours_is_there(found, monkeypatch):
    names = found("out = sorted(os.environ)")
    assert "DATABASE_URL" not in names
    assert set(eval(names)) <= {*ENVIRONMENT, "LC_CTYPE", "PWD"}


def test_only_the_interpreter_is_there(found):
    top = eval(found("out = os.listdir('/')"))
    interpreter = sys.base_prefix.split("/")[1]
    assert set(top) <= {"lib", "lib64", "usr", "etc", "dev", "tmp", "packages", "ratchet", interpreter}
    assert not {"proc", "home", "work", "var", "run"} & set(top)


def test_the_project_is_not_there(found):
    assert eval(found("out = os.listdir('/ratchet') + os.listdir('/ratchet/services')")) == [
        "services",
        "sandbox",
    ]


@pytest.mark.parametrize("path", ["/x", "/usr/x", "/etc/x", "/dev/x", "/ratchet/services/x"])
def test_nothing_can_be_written_but_scratch(found, path):
    assert int(found(error(f"os.open({path!r}, os.O_CREAT | os.O_WRONLY)"))) in (13, 30)


def test_scratch_is_small(found):
    fill = "out = 0\ntry:\n  for n in range(100):\n    with open(f'/tmp/{n}', 'wb') as file: "
    assert int(found(fill + "out += file.write(bytes(1 << 20))\nexcept OSError: pass")) <= 16 << 20


def test_no_network_is_there(found):
    assert int(found(error("socket.create_connection(('192.0.2.1', 80), 1)"))) == 101  # ENETUNREACH


def test_only_its_line_and_nothing_is_open(found):
    opened = found(
        "out = []\nfor fd in range(64):\n  try: os.fstat(fd)\n  except OSError: continue\n  out.append(fd)"
    )
    assert len(eval(opened)) <= 5  # 0, 1, 2 to nowhere; the line, twice


def test_it_is_alone(found):
    """The first process of its namespace, or, where root made it, the second."""
    assert eval(found("out = [os.getpid(), os.getppid()]")) in ([1, 0], [2, 1])


def test_it_is_not_root_to_the_kernel(found):
    assert int(found(error("os.setuid(12345)") + "\nout = out or 0")) in (1, 22)


@pytest.mark.parametrize("call", ["os.fork()", "os.posix_spawn(sys.executable, ['x'], {})"])
def test_it_starts_no_process(found, call):
    assert int(found(error(call))) in (1, 11)


def test_memory_is_limited(found):
    assert found("try: out = len(bytearray(2 << 30))\nexcept MemoryError: out = 'no'") == "'no'"


def test_a_program_does_not_see_the_one_before(judged):
    leaves = "open('/tmp/left', 'w').write('x')\nimport builtins\nbuiltins.left = 1\ndef f(): return 1"
    looks = "import os, builtins\ndef f(): return os.path.exists('/tmp/left') or hasattr(builtins, 'left')"
    assert judged(leaves, "def check(c): assert c() == 1").passed
    assert judged(looks, "def check(c): assert c() is False").passed


def test_the_server_runs_without_root_on_user_namespaces(tmp_path):
    """As an ordinary user, with whatever Python that user has; root here becomes one."""
    if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
        pytest.skip("needs root, to become another user, and a Python that others may run")
    script = (
        "from services.sandbox import isolation as i\n"
        f"i._bubblewraps = lambda: [{next(iter(isolation._bubblewraps()))!r}]\n"
        "print(i.find(None, allow_unsandboxed=False))"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-c", script],
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PYTHONPATH": str(isolation.cage.PROJECT)},
    )
    assert "as_root=False" in done.stdout, done.stderr
