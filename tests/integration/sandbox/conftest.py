"""A sandbox of our own for all tests here, two programs at once; skipped where no isolation works."""

from collections.abc import Callable, Iterator

import pytest

from services.core.errors import SandboxError
from services.core.sandbox import Outcome, Program, Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    try:
        opened = Sandbox.open(None, workers=2)
    except SandboxError as exc:
        pytest.skip(str(exc))
    with opened:
        yield opened


@pytest.fixture
def judged(sandbox: Sandbox) -> Callable[..., Outcome]:
    """`judged(code, test, style=…)`: what becomes of one program whose function is `f`."""

    def judge(code: str, test: str, **options) -> Outcome:
        return sandbox.run([Program("one", code, test, "f", **options)])[0]

    return judge
