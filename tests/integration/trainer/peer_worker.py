"""A process of test_distributed.py that trains nothing: `peer_worker.py FOLDER words|die|hang`."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from services.core.errors import PublishError
from services.trainer import failure
from services.trainer.engine import distributed
from services.trainer.engine.distributed import Distribution


def words(joined: Distribution) -> dict[str, Any]:
    """What processes tell one another, and what the others hear when the first fails."""
    heard = ""
    try:
        joined.agree(lambda: fail("the first process's own words"))
    except PublishError as exc:
        heard = f"{type(exc).__name__}: {exc}"
    mine = float(joined.rank + 1)
    return {
        "agreed": joined.agree(lambda: {"rank": joined.rank}),
        "any": (joined.any(joined.rank == joined.world - 1), joined.any(False)),
        "sum": joined.sum(mine, 0.1 * mine),
        "heard": heard,
    }


def fail(message: str) -> None:
    raise PublishError(message)


def die(folder: Path, joined: Distribution) -> None:
    """The second process fails while the first waits for it."""
    if joined.rank == 1:
        failure.leave(folder, "the second process's own words")
        os._exit(3)
    try:
        joined.any(False)
    except RuntimeError as exc:
        failure.leave(folder, str(exc))
        raise


def main() -> None:
    folder, case = Path(sys.argv[1]), sys.argv[2]
    joined = distributed.join(30.0)
    if case == "words":
        (folder / f"words-{joined.rank}.json").write_text(json.dumps(words(joined)))
    elif case == "die":
        die(folder, joined)
    else:
        (folder / f"hangs-{joined.rank}").touch()
        time.sleep(300)
    joined.close()


if __name__ == "__main__":
    main()
