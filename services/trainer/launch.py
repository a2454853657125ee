"""torchrun, but a stop in good order is no traceback: `python -m services.trainer.launch`, same options."""

import sys

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException


def main() -> int:
    """torchrun's exit status; 128 plus the signal when it was told to stop."""
    try:
        run.main()
    except SignalException as exc:
        return 128 + int(exc.sigval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
