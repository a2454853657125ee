"""Does the API do what its OpenAPI document says, whatever it is asked?

    .venv/bin/python bench/metrics_fuzz.py [--cases N]

Asks 2,000 times, rightly and wrongly, as schemathesis makes it up from the document, of an application on a
PostgreSQL server of its own with the history of tests/metrics_history. Any answer that the document does not
describe, and any fault, ends it with what was asked. /api/v1/stream is left out: its answer has no end.

Ends with one line of JSON: how many were asked, and of which status the answers were.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

import schemathesis  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from pydantic import SecretStr  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402

from services.cli.stack.postgres import EmbeddedPostgres  # noqa: E402
from services.core import db  # noqa: E402
from services.core.settings import Settings  # noqa: E402
from services.core.target import Target  # noqa: E402
from services.metrics.app import create_app  # noqa: E402
from tests.metrics_history import fill  # noqa: E402

CASES = 2_000
API, STREAM = "/api/v1", "/api/v1/stream"
PASSWORD, TOKEN = "of-the-bench", "a-token-that-is-long-enough"
NO_DURABILITY = {"fsync": "off", "synchronous_commit": "off"}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=CASES)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ratchet-fuzz-metrics-") as home:
        postgres = EmbeddedPostgres(Path(home), NO_DURABILITY)
        try:
            owner = postgres.start()
            db.migrate(owner, {"ratchet_metrics": PASSWORD})
            with closing(db.Database(owner)) as database:
                fill(database)
            answers = ask(owner, asked.cases)
        finally:
            postgres.stop()
    print(json.dumps({"cases": sum(answers.values()), "answers": dict(sorted(answers.items()))}))
    return 0


def ask(owner: Target, cases: int) -> Counter[int]:
    """The statuses of so many answers, or a few more; raises on the first that is not as described."""
    url = f"postgresql://ratchet_metrics:{PASSWORD}@{owner.host}:{owner.port}/{owner.dbname}"
    app = create_app(Settings(database_url=SecretStr(url), dashboard_token=SecretStr(TOKEN)))
    schema = schemathesis.openapi.from_wsgi(f"{API}/openapi.json", app).exclude(path=STREAM)
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    answers: Counter[int] = Counter()
    each = -(-cases // len(operations) // len(GenerationMode))
    for operation in operations:
        for mode in GenerationMode:
            found = _ask(operation, mode, each)
            print(f"{operation.method.upper():5} {operation.path:48} {mode:9} {dict(found)}", flush=True)
            answers += found
    return answers


def _ask(operation: Any, mode: GenerationMode, cases: int) -> Counter[int]:
    answers: Counter[int] = Counter()

    @settings(
        max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        derandomize=False,
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        answers[case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}).status_code] += 1

    with suppress(Unsatisfiable):  # of some operations nothing can be asked wrongly
        one()
    return answers


if __name__ == "__main__":
    sys.exit(main())
