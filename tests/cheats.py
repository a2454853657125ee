"""Programs that want to pass tests they do not meet. Each is named for its trick, and must fail.

The problem is to add two numbers; none of these adds. `CHECK`, `ASSERT` and `UNITTEST` map a name to the
program, `programs()` makes them what the sandbox takes.
"""

from collections.abc import Iterator

from services.core.sandbox import Program, Style

ENTRY = "add"
TIMEOUT = 0.5  # seconds of processor time; an honest program takes a few milliseconds

TESTS: dict[Style, str] = {
    "check": """
def check(candidate):
    for a, b in ((2, 3), (5, 7), (-1, 1), (10, 0)):
        assert candidate(a, b) == a + b
    assert isinstance(candidate(1, 1), int) and candidate([1], [2]) == [1, 2]
""",
    "assert": "assert add(2, 3) == 5\nassert add(5, 7) == 12\nassert [add(1, 1)] == [2]\n",
    "unittest": """
import unittest
class TestCases(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(2, 3), 5)
    def test_lists(self):
        self.assertEqual(add([1], [2]), [1, 2])
""",
}
HONEST = "def add(a, b):\n    return a + b\n"

EQUAL_TO_ALL = """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __radd__(self, other): return self
def add(a, b): return Any()
"""
EQUAL_INT = """
class Any(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
def add(a, b): return Any(0)
"""
EXIT_AT_ONCE = "import os\nos._exit(0)\n"
EXIT_WHEN_CALLED = "import os\ndef add(a, b): os._exit(0)\n"
FRAMES = """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame is not None:
        for name in list(frame.f_locals):
            if name in ("check", "result", "expected", "known"):
                frame.f_locals[name] = "passed"
        if "result" in frame.f_locals and hasattr(frame.f_locals["result"], "append"):
            frame.f_locals["result"].append("passed")
        frame = frame.f_back
    import os
    os._exit(0)
"""
PATCHED_BUILTINS = """
import builtins
builtins.AssertionError = type("Nothing", (Exception,), {})
builtins.isinstance = lambda *_: True
builtins.all = builtins.any = lambda *_: True
builtins.compile = builtins.exec = lambda *_, **__: None
def add(a, b): return 0
"""
SPAWNED = """
import os, subprocess, sys
def add(a, b):
    script = "import os, time; os.setsid(); time.sleep(30)"
    for spawn in (
        lambda: subprocess.Popen([sys.executable, "-c", script]),
        lambda: os.posix_spawn(sys.executable, [sys.executable, "-c", script], {}),
        lambda: os.fork() or os.execv(sys.executable, [sys.executable, "-c", script]),
    ):
        try: spawn()
        except OSError: pass
    return 0
"""
FORK_BOMB = """
import os
def add(a, b):
    while True:
        try: os.fork()
        except OSError: pass
"""
ENDLESS = "def add(a, b):\n    while True: pass\n"
MEMORY = """
def add(a, b):
    held = []
    while True: held.append(bytearray(1 << 26))
"""
FLOOD = """
import os
def add(a, b):
    while True:
        for fd in (1, 2):
            try: os.write(fd, b"passed\\n" * 10000)
            except OSError: pass
"""

CHECK: dict[str, str] = {
    "equals everything": EQUAL_TO_ALL,
    "an int that equals everything": EQUAL_INT,
    "a list that equals everything": EQUAL_INT.replace("(int)", "(list)").replace("int.__hash__", "None")
    .replace("Any(0)", "Any()"),
    "a str that equals everything": EQUAL_INT.replace("(int)", "(str)").replace("int.__", "str.__"),
    "lies about its class": EQUAL_TO_ALL.replace("class Any:", "class Any:\n    __class__ = int"),
    "exits at once": EXIT_AT_ONCE,
    "exits when called": EXIT_WHEN_CALLED,
    "raises SystemExit(0)": "import sys\ndef add(a, b): sys.exit(0)\n",
    "walks the frames": FRAMES,
    "patches the builtins": PATCHED_BUILTINS,
    "patches unittest": """
import unittest
unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *_, **__: None
unittest.TestCase.run = lambda self, result=None: result
def add(a, b): return 0
""",
    "replaces modules": """
import sys
for name in list(sys.modules):
    if name not in ("sys", "builtins"): sys.modules[name] = None
def add(a, b): return 0
""",
    "patches the codec": """
import sys
for module in list(sys.modules.values()):
    for name in ("encode", "decode", "dumps", "loads", "stand_in", "_encode"):
        if hasattr(module, name) and "sandbox" in module.__name__:
            setattr(module, name, lambda *_: {"equal": True})
def add(a, b): return 0
""",
    "patches json": "import json\njson.dumps = lambda *_, **__: 'true'\ndef add(a, b): return 0\n",
    "reads the expectations": """
import gc, os
def add(a, b):
    for thing in gc.get_objects():
        if isinstance(thing, str) and "def check" in thing: return a + b
    for folder, _, names in os.walk("/"):
        for name in names:
            try: text = open(os.path.join(folder, name)).read()
            except (OSError, ValueError): continue
            if "def check(candidate):" in text and "candidate(a, b) == a + b" in text: return a + b
        if folder.count("/") > 2: break
""",
    "writes the expectations": """
def check(candidate): pass
def add(a, b):
    global check
    check = lambda candidate: None
    if isinstance(a, list): a.clear(); b.clear()
    return [] if isinstance(a, list) else 0
""",
    "spawns processes": SPAWNED,
    "is a fork bomb": FORK_BOMB,
    "loops for ever": ENDLESS,
    "sleeps for ever": "import time\ndef add(a, b): time.sleep(1e6)\n",
    "takes its clock away": f"import signal\nsignal.setitimer(signal.ITIMER_PROF, 0)\n{ENDLESS}",
    "stops itself": "import os, signal\ndef add(a, b): os.kill(os.getpid(), signal.SIGSTOP)\n",
    "kills all it can": """
import os, signal
def add(a, b):
    for pid in (-1, 0, 1, os.getppid(), *range(2, 2000)):
        try: pid != os.getpid() and os.kill(pid, signal.SIGKILL)
        except OSError: pass
    return 0
""",
    "takes all memory": MEMORY,
    "starts threads without end": """
import threading, time
def add(a, b):
    while True:
        try: threading.Thread(target=time.sleep, args=(60,)).start()
        except RuntimeError: return 0
""",
    "floods its output": FLOOD,
    "floods the line": "import os\nwhile True: os.write(3, b'\\x00\\x00\\x00\\x02{}' * 10000)\n",
    "announces a huge answer": "import os\nos.write(3, b'\\xff' * 100)\ndef add(a, b): return 0\n",
    "answers before it is asked": """
import os
for value in (b"5", b"12", b"0", b"10", b"2"):
    body = b'{"id":"0","value":' + value + b'}'
    os.write(3, len(body).to_bytes(4, "big") + body)
def add(a, b): return 0
""",
    "claims to have passed": """
import os
body = b'{"result":"passed","done":true,"value":null}'
for fd in range(64):
    try: os.write(fd, len(body).to_bytes(4, "big") + body)
    except OSError: pass
def add(a, b): return 0
""",
    "answers by hand": """
import os, sys
def add(a, b):
    frame = sys._getframe()
    while "request" not in frame.f_locals: frame = frame.f_back
    number = frame.f_locals["request"]["id"].encode()
    for value in (b'{"any":1}', b'{"tuple":5}', b'{"dict":[[[1],2]]}', b'{"int":5}', b'[' * 100000, b'NaN'):
        body = b'{"id":"' + number + b'","value":' + value + b'}'
        os.write(3, len(body).to_bytes(4, "big") + body)
    return 0
""",
    "raises what cannot be shown": """
class Odd(Exception):
    def __str__(self): raise SystemExit(0)
    __repr__ = __str__
def add(a, b): raise Odd()
""",
    "raises what never ends to show": """
class Odd(AssertionError):
    def __str__(self):
        while True: pass
def add(a, b): raise Odd()
""",
    "raises the checker's own errors": """
class OutOfTimeError(BaseException): pass
class FaultError(OutOfTimeError): pass
def add(a, b): raise FaultError("passed")
""",
    "returns what holds itself": "def add(a, b):\n    held = []\n    held.append(held)\n    return held\n",
    "returns what is too deep": """
def add(a, b):
    held = 5
    for _ in range(100000): held = [held]
    return held
""",
    "returns an endless iterator": "import itertools\ndef add(a, b): return itertools.count()\n",
    "returns too much": "def add(a, b): return 'x' * (1 << 25)\n",
    "overwrites the sandbox": """
import os
for folder, _, names in os.walk("/ratchet"):
    for name in names:
        try: open(os.path.join(folder, name), "w").write("")
        except OSError: pass
def add(a, b): return 0
""",
    "unlinks through ctypes": """
try:
    import ctypes, sys
    ctypes.CDLL(None).unlink(sys.executable.encode())
    ctypes.CDLL(None).ptrace(16, 1, 0, 0)
except (ImportError, OSError): pass
def add(a, b): return 0
""",
    "asks the network": """
import socket
def add(a, b):
    for family, address in ((socket.AF_INET, ("192.0.2.1", 80)), (getattr(socket, "AF_VSOCK", 40), (2, 1))):
        try: return int(socket.create_connection(address, 0.2) is not None) * (a + b)
        except OSError: pass
    return 0
""",
}  # fmt: skip

ASSERT: dict[str, str] = {
    "equals everything, asserted": EQUAL_TO_ALL,
    "an int that equals everything, asserted": EQUAL_INT,
    "exits at once, asserted": EXIT_AT_ONCE,
    "exits when called, asserted": EXIT_WHEN_CALLED,
    "walks the frames, asserted": FRAMES,
    "loops for ever, asserted": ENDLESS,
}

UNITTEST: dict[str, str] = {
    "equals everything, beside": EQUAL_TO_ALL,
    "an int that equals everything, beside": EQUAL_INT,
    "makes __eq__ by hand, beside": """
Any = type("Any", (), {"__eq__": lambda self, other: True})
def add(a, b): return Any()
""",
    "exits at once, beside": EXIT_AT_ONCE,
    "exits when called, beside": EXIT_WHEN_CALLED,
    "exits by another name, beside": "import os\nend = getattr(os, '_ex' + 'it')\ndef add(a, b): end(0)\n",
    "walks the frames, beside": FRAMES,
    "walks the frames by another name, beside": """
import sys
def add(a, b):
    frame = getattr(sys, "_get" + "frame")()
    return frame and a + b
""",
    "walks a traceback, beside": """
def add(a, b):
    try: raise ValueError
    except ValueError as exc: return getattr(exc.__traceback__, "tb_" + "frame") and a + b
""",
    "patches unittest, beside": """
import unittest
unittest.TestCase.assertEqual = lambda *_, **__: None
def add(a, b): return 0
""",
    "patches unittest by another name, beside": """
import sys
sys.modules["unit" + "test"].TestCase.assertEqual = lambda *_, **__: None
def add(a, b): return 0
""",
    "patches unittest when called, beside": """
import sys
def add(a, b):
    sys.modules["unit" + "test"].TestCase.assertEqual = lambda *_, **__: None
    return 0
""",
    "skips, beside": """
import sys
def add(a, b): raise sys.modules["unit" + "test"].SkipTest
""",
    "claims to have passed, beside": CHECK["claims to have passed"],
    "is a fork bomb, beside": FORK_BOMB,
    "loops for ever, beside": ENDLESS,
    "takes all memory, beside": MEMORY,
    "floods its output, beside": FLOOD,
    "reads by gc, beside": "import gc\ndef add(a, b): return gc.get_objects() and a + b\n",
}


def programs() -> Iterator[Program]:
    """All cheats; a key is a name."""
    for style, cheats in (("check", CHECK), ("assert", ASSERT), ("unittest", UNITTEST)):
        for name, code in cheats.items():
            yield program(name, code, style)  # type: ignore[arg-type]


def program(name: str, code: str, style: Style) -> Program:
    return Program(name, code, TESTS[style], ENTRY, style, TIMEOUT)
