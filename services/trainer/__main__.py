"""`python -m services.trainer`: the daemon."""

import sys

from services.core.errors import RatchetError
from services.trainer.daemon import main

if __name__ == "__main__":
    try:
        sys.exit(main())
    except RatchetError as exc:
        sys.stderr.write(f"trainer: {exc}\n")
        sys.exit(1)
