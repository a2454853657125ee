"""Starts processes with a model: `python -m services.trainer.launch`, with torchrun's options.

One process on one machine needs no agent beside it: its module runs right here, with the libraries that it
imports loaded sooner than it would itself (`libraries`). Otherwise torchrun without its tracebacks: a worker
that failed has said why in its own words; a stop in good order is no failure.
"""

import argparse
import runpy
import sys

from services.trainer import libraries


def main() -> int:
    """0, or 1 when a worker failed, or 128 plus the signal when it was told to stop."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--nproc-per-node")
    options.add_argument("--nnodes", default="1")
    options.add_argument("-m", dest="module")
    known, _ = options.parse_known_args()
    if (known.nproc_per_node, known.nnodes) == ("1", "1") and known.module:
        sys.argv = [known.module]
        libraries.load()
        runpy.run_module(known.module, run_name="__main__", alter_sys=True)
        return 0  # a module that has a status leaves with it
    return _torchrun()


def _torchrun() -> int:
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        run.main()
    except SignalException as exc:
        return 128 + int(exc.sigval)
    except ChildFailedError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
