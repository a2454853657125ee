"""The canary: a few fixed texts and prompts, tried on a champion as it was published.

`python -m services.trainer.canary FOLDER` loads the folder afresh and prints one line of JSON. Exit status 0:
it passed; 1: it failed; 2: it could not be tried, which says nothing of the adapter.
"""

import json
import logging
import sys
from pathlib import Path

from services.core.errors import CanaryError, PublishError
from services.core.models import Json
from services.core.settings import from_environment
from services.trainer import libraries, publish

PASSED, FAILED, UNTRIED = 0, 1, 2  # exit status


def main() -> int:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    status, said = tried(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(said) + "\n")
    return status


def tried(folder: Path) -> tuple[int, Json]:
    """The exit status and what is printed. Damaged files are told before anything heavy is loaded."""
    try:
        manifest = publish.verify(folder)
        libraries.load()
        from services.trainer.canary_suite import run

        nats = run(folder, manifest, from_environment())
    except (CanaryError, PublishError) as exc:
        return FAILED, {"passed": False, "reason": str(exc)}
    except Exception as exc:  # the base model is not to be had, no memory: not the adapter's fault
        return UNTRIED, {"passed": None, "reason": f"{type(exc).__name__}: {exc}"}
    return PASSED, {"passed": True, "reason": "it is what was judged", "nats": nats}


if __name__ == "__main__":
    sys.exit(main())
