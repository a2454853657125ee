"""The least that an answer of this service can cost: Flask says "ok", under the same gunicorn.

METRICS_PORT=N python -m bench.metrics_floor
"""

import sys
from types import SimpleNamespace

from flask import Flask

from services.core.settings import from_environment
from services.metrics.__main__ import SWITCH, Server


class Floor(Server):
    """The server of the service with another application: one route, no hook, no database."""

    def load(self) -> Flask:
        sys.setswitchinterval(SWITCH)
        app = Flask(__name__)
        app.add_url_rule("/health/live", view_func=lambda: {"status": "ok"})
        app.extensions["stream"] = SimpleNamespace()
        return app


if __name__ == "__main__":
    Floor(from_environment()).run()
