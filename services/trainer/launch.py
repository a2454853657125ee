"""torchrun without its tracebacks: `python -m services.trainer.launch`, same options.

A worker that failed has said why in its own words; a stop in good order is no failure.
"""

import sys

from torch.distributed import run
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError


def main() -> int:
    """0, or 1 when a worker failed, or 128 plus the signal when torchrun was told to stop."""
    try:
        run.main()
    except SignalException as exc:
        return 128 + int(exc.sigval)
    except ChildFailedError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
