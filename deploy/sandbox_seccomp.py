"""Derives the sandbox's seccomp profile from Docker's default one by adding what bubblewrap needs.

    curl --fail --location SOURCE | python deploy/sandbox_seccomp.py > deploy/sandbox-seccomp.json

SOURCE below is the default profile (Apache-2.0) that deploy/sandbox-seccomp.json was made from. Every rule
of it stays; `diff` of the two files shows the rules that ADDED names, at the end.

Docker's default lets no process make a namespace or mount anything unless the container has CAP_SYS_ADMIN.
The sandbox has no capability; it makes a *user* namespace, in which the kernel lets it do the rest, so
these calls are allowed without arguments that reach beyond it: the capabilities they ask for are those
of the new namespace. `clone3` stays refused: a filter cannot see its flags, and libc falls back to `clone`.
"""

import json
import sys
from typing import Any

SOURCE = "https://raw.githubusercontent.com/moby/profiles/seccomp/v0.2.3/seccomp/default.json"
CLONE_NEWUSER = 0x10000000  # <linux/sched.h>
COMMENT = "Ratchet's sandbox: what bubblewrap needs"


def with_new_user_namespace(name: str) -> dict[str, Any]:
    """Allow a call whose first argument is flags, only where they ask for a new user namespace.

    `value` is a mask and `valueTwo` what the masked flags must equal. On s390 the flags of clone are
    its second argument: there the sandbox does not work.
    """
    flags = {"index": 0, "value": CLONE_NEWUSER, "valueTwo": CLONE_NEWUSER, "op": "SCMP_CMP_MASKED_EQ"}
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [flags], "comment": COMMENT}


ADDED: list[dict[str, Any]] = [
    with_new_user_namespace("clone"),
    {"names": ["mount", "pivot_root", "umount2"], "action": "SCMP_ACT_ALLOW", "comment": COMMENT},
]


def derive(default: dict[str, Any]) -> dict[str, Any]:
    """The profile of the sandbox, from Docker's."""
    return {**default, "syscalls": [*default["syscalls"], *ADDED]}


def as_text(profile: dict[str, Any]) -> str:
    """As Docker's own file is written, so that the two can be compared line by line."""
    return json.dumps(profile, indent="\t") + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_text(derive(json.load(sys.stdin))))
