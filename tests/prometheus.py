"""A real Prometheus for tests, where one is installed or deploy/prometheus.sh has unpacked one."""

import json
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.core.settings import PROJECT

MONITORING = PROJECT / "deploy" / "monitoring"
TOOLS = PROJECT / ".ratchet" / "tools" / "usr" / "bin"
SEARCHED = f"{os.environ.get('PATH', '')}{os.pathsep}{TOOLS}"
PROMTOOL, PROMETHEUS = (shutil.which(name, path=SEARCHED) for name in ("promtool", "prometheus"))

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="no promtool: deploy/prometheus.sh fetches one")
needs_prometheus = pytest.mark.skipif(
    PROMETHEUS is None, reason="no Prometheus: deploy/prometheus.sh fetches one"
)

# What scrapers really send: Prometheus 2.42, 2.55 and 3.x, the last with native histograms and without.
HEADERS = {
    "prometheus-2.42": "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1"
    ";q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "prometheus-2.55": "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text"
    ";version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    "prometheus-3": "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/"
    "openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain"
    ";version=0.0.4;q=0.3,*/*;q=0.2",
    "prometheus-3-protobuf": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"
    ";encoding=delimited;escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=1.0.0;escaping="
    "allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping="
    "allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
}


def promtool(*arguments: str, text: str | None = None) -> str:
    """What promtool prints; fails with it when promtool finds anything wrong."""
    assert PROMTOOL
    found = subprocess.run(
        [PROMTOOL, *arguments], input=text, capture_output=True, text=True, cwd=MONITORING, check=False
    )
    said = found.stdout + found.stderr
    assert found.returncode == 0, said
    return said


@dataclass(frozen=True)
class Prometheus:
    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """`data` of the answer of its HTTP API; None while nobody answers."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}{query}", timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is starting
                return None
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        except OSError:
            return None

    def query(self, expression: str) -> list[Any]:
        """The samples that answer it now."""
        found = self.get("query", query=expression)
        return found["result"] if found else []


@contextmanager
def scraping(url: str, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus with the configuration of deploy/monitoring that scrapes `url`, every second."""
    assert PROMETHEUS
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(MONITORING / "alerts.yml")]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [url.removeprefix("http://")]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        PROMETHEUS,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
