"""The process that answers a question: `python -m services.trainer.answering`.

It reads one question as JSON on standard input and writes the answers as JSON to standard output; what is
written so far goes to standard error as lines of `text JSON`.
"""

import json
import sys

from services.core.settings import from_environment
from services.trainer import inquiry
from services.trainer.answering.question import answered


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    settings = from_environment()
    return inquiry.answer(lambda sent: answered(sent, settings, _say if sent["stream"] else None))


def _say(text: str) -> None:
    sys.stderr.write(f"text {json.dumps(text)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
