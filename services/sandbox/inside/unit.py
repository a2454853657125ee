"""BigCodeBench's style, at the checker: counts the reports from the cage against the tests there are."""

import ast
from typing import Any

from services.sandbox.inside import flags
from services.sandbox.inside.channel import Channel, FaultError
from services.sandbox.inside.check import Report


def run(request: dict[str, Any], channel: Channel, report: Report) -> None:
    """Returns when every test method there is was reported to pass, once.

    Raises FlaggedError or FaultError for a program that reaches for its tests or ends before them,
    AssertionError with the first failure otherwise.
    """
    wanted = methods(request["test"])
    report(tests=len(wanted), tests_passed=0)
    if not wanted:
        raise ValueError("the test has no TestCase with a method whose name begins with test")
    flags.refuse(request["code"])
    channel.load(request["code"])
    seen: dict[str, bool] = {}
    failure = ""
    for message in channel.suite(request["test"]):
        if "test" in message:
            name = str(message["test"])
            if name in seen:
                raise FaultError(f"{name} was reported twice")
            seen[name] = message.get("passed") is True
            failure = failure or ("" if seen[name] else f"{name}: {str(message.get('text'))[:300]}")
            report(tests_passed=sum(passed for test, passed in seen.items() if test in wanted))
    if missing := sorted(wanted - set(seen)):
        raise AssertionError(f"{missing[0]} did not run")
    if failure:
        raise AssertionError(failure)


def methods(test: str) -> set[str]:
    """Class.method for each test that a test module defines. Raises SyntaxError for what is no Python."""
    return {
        f"{node.name}.{method.name}"
        for node in ast.parse(test).body
        if isinstance(node, ast.ClassDef) and node.bases
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name.startswith("test")
    }
