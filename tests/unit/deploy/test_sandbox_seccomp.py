"""The sandbox's seccomp profile is Docker's default and five calls more."""

import hashlib
import json
from pathlib import Path

from deploy import sandbox_seccomp

PROFILE = Path(__file__).resolve().parents[3] / "deploy" / "sandbox-seccomp.json"
DEFAULT_SHA256 = (
    "536529b665dd0972c37bfb569f5d4ac8a53592e7b00752bc39ff063ca9864c74"  # of sandbox_seccomp.SOURCE
)


def profile() -> dict[str, list[dict[str, object]]]:
    document: dict[str, list[dict[str, object]]] = json.loads(PROFILE.read_text(encoding="utf-8"))
    return document


def test_without_what_was_added_it_is_dockers_file_to_the_byte() -> None:
    """Nothing of Docker's default was taken away or changed."""
    added = len(sandbox_seccomp.ADDED)
    default = {**profile(), "syscalls": profile()["syscalls"][:-added]}
    text = sandbox_seccomp.as_text(default).removesuffix("\n")  # theirs ends without one
    assert hashlib.sha256(text.encode()).hexdigest() == DEFAULT_SHA256


def test_what_was_added_is_what_the_script_adds() -> None:
    """The file was not edited by hand."""
    assert profile()["syscalls"][-len(sandbox_seccomp.ADDED) :] == sandbox_seccomp.ADDED


def test_namespaces_are_made_with_a_user_namespace_only() -> None:
    """`clone` without CLONE_NEWUSER and `clone3` stay as Docker has them."""
    names = {name for rule in sandbox_seccomp.ADDED for name in rule["names"]}
    assert names == {"clone", "mount", "pivot_root", "umount2"}
    guarded = [rule for rule in sandbox_seccomp.ADDED if rule["names"] == ["clone"]]
    assert guarded[0]["args"][0]["value"] == guarded[0]["args"][0]["valueTwo"] == 0x10000000
