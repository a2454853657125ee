"""All checks at once, each in a thread of its own, and none waited for longer than there is patience."""

import threading
import time
from collections.abc import Mapping, Sequence

from services.cli.doctor.finding import Check, Finding, Status, error, skipped
from services.cli.environment import Environment
from services.core.errors import RatchetError

PATIENCE = 4.0  # seconds for all of them: with the start, the answer is there within 5


def examine(
    checks: Mapping[str, Check], environment: Environment, patience: float = PATIENCE
) -> list[Finding]:
    """What every check found, in their order; one that is not done in time is a finding itself."""
    found: dict[str, Sequence[Finding]] = {}

    def look(name: str, check: Check) -> None:
        try:
            found[name] = list(check(environment))
        except RatchetError as exc:
            found[name] = [error(name, str(exc), "the message says what to do")]
        except Exception as exc:  # one check that breaks must not hide what the others found
            found[name] = [skipped(name, f"could not be checked: {type(exc).__name__}: {exc}")]

    threads = [threading.Thread(target=look, args=item, daemon=True) for item in checks.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = f"not known yet after {patience:g} s: this machine or what it asks is slow now"
    return [finding for name in checks for finding in found.get(name, [skipped(name, late)])]


def count(findings: Sequence[Finding], status: Status) -> int:
    return sum(finding.status is status for finding in findings)
