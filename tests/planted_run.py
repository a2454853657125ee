"""A run of everything with secrets planted in settings, code and names, and all that it left and told.

The processor, the trainer with a round of the tiny model, W&B and TensorBoard, webhooks and the metrics
service run as they do in service, and a processor that cannot log in.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

from services.core import db
from services.core.settings import NAMES, PROJECT
from services.core.target import Target
from tests import offline_wandb
from tests import tiny_model as tiny
from tests.integration.trainer.test_round import rows, wait_for
from tests.receiver import SECRET, Receiver, free_port

DATABASE = "planted_secrets"
PASSWORDS = {  # of the roles, each handed to its service in another way
    "processor": "Pr0c-pLanted-7f3Kq9",
    "trainer": "tr@in/er:Pl4nted Qx71%",
    "metrics": "m3trics-Planted-9Kd2",
}
WRONG = "wr0ng-Planted-2Lp4"  # password
SETTINGS = {  # of formats that nothing would recognise, but for the token of Hugging Face
    "HF_TOKEN": "hf_" + "PLantedAbCdEf0123456789GhIjKlMnOp",
    "WANDB_API_KEY": "c0ffee" + "9d81a7e3" * 4 + "42",
    "WEBHOOK_SECRET": SECRET,
    "DASHBOARD_TOKEN": "dash-Planted-55aQz0-token",
}
HOOK = "T0Planted/B1hook-secret-in-a-path"
INGESTED = {  # in code and in names
    "github": "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
    "aws": "AKIA" + "Q3EGTKD2PLMNB7XA",
    "password": "Zk81-pLanted-xQ",
    "login": "Vr4-pLanted-Login",
    "in_a_file_name": "glpat-" + "pL4ntedE5fG7hJ9kL1mN",
    "in_a_source_name": "sk-proj-" + "pL4ntedAbCdEfGh0123456789",
}
CODE = f'''"""A client of the store, as one finds it on a laptop."""

import urllib.request

GITHUB_TOKEN = "{INGESTED["github"]}"
AWS_ACCESS_KEY_ID = "{INGESTED["aws"]}"
password = "{INGESTED["password"]}"
STORE = "postgresql://sam:{INGESTED["login"]}@store.internal/code"


def fetch(path: str) -> bytes:
    """What the store has under a path."""
    request = urllib.request.Request(STORE + path, headers={{"Authorization": "token " + GITHUB_TOKEN}})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def count(paths: list[str]) -> int:
    """How many of the paths have something."""
    return sum(1 for path in paths if fetch(path))
'''
ACCEPTED = ("*/*", "text/html", "text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0")
LINK = re.compile(r"""(?:href|src|data-chart|hx-get)=["']([^"'#]+)""")
MOST_PAGES = 300
ENDED = "SELECT * FROM rounds WHERE state <> 'open'"
PATIENCE = 300.0  # seconds; on a quiet machine the round takes 20


@dataclass
class Left:
    """What the run left: `kept` by where it is, bytes as they are there."""

    home: Path
    round: Any
    progress: list[Any]
    kept: dict[str, bytes] = field(default_factory=dict)

    def text(self, part: str) -> str:
        return (self.home / "logs" / f"{part}.log").read_text()


def run(home: Path, target: Target, database: db.Database) -> Left:
    _ingest(home / "ingest")
    recipe = tiny.recipe(home, tiny.make(home / "model"))
    recipe.write_text(recipe.read_text() + "logged_predictions: 2\n")
    with Receiver().running() as receiver, ExitStack() as running:
        url = receiver.url.replace("/hook", f"/hook/{HOOK}")
        environments = _environments(home, recipe, target, url)
        for service, environment in environments.items():
            running.enter_context(_service(service, environment, home / "logs" / f"{service}.log"))
        refused = environments["processor"] | {"POSTGRES_PASSWORD": WRONG}
        running.enter_context(_service("processor", refused, home / "logs" / "refused.log"))
        (closed,) = wait_for(lambda: rows(database, ENDED), PATIENCE)
        receiver.wait(lambda it: any(message["type"] != "round.started" for message in it.taken), PATIENCE)
        kept = {f"message {number}": body for number, body in enumerate(receiver.bodies)}
        kept |= {f"headers {number}": repr(asked).encode() for number, asked in enumerate(receiver.asked)}
        kept |= _pages(int(environments["metrics"]["METRICS_PORT"]), database)
    progress = rows(database, "SELECT kind, step, metrics FROM progress ORDER BY kind, step")
    kept |= _tables(database) | _files(home)
    return Left(home, closed, progress, kept)


def _ingest(folder: Path) -> None:
    """Real code; among it credentials, and names that are some."""
    source = folder / f"laptop-{INGESTED['in_a_source_name']}"
    source.mkdir(parents=True)
    for number, path in enumerate(tiny.standard_library(60)):
        shutil.copyfile(path, source / f"{number:02}_{path.name}")
    (source / "client.py").write_text(CODE)
    (source / f"client-{INGESTED['in_a_file_name']}.py").write_text(CODE.replace("store", "depot"))
    (source / f"{INGESTED['in_a_file_name']}.bin").write_bytes(b"\0" * 100)  # is rejected


def _environments(home: Path, recipe: Path, target: Target, url: str) -> dict[str, dict[str, str]]:
    """Of each service, as little as Compose would hand it, with all that is said at DEBUG."""
    password_file = home / "password-of-metrics"
    password_file.write_text(PASSWORDS["metrics"])
    spared = {name: value for name, value in os.environ.items() if name not in NAMES}
    common = spared | {
        "POSTGRES_HOST": target.host, "POSTGRES_PORT": str(target.port), "POSTGRES_DB": target.dbname,
        "RECIPE": str(recipe), "LOG_LEVEL": "DEBUG", "QUALITY_THRESHOLD": "1", "MIN_NEW_FILES": "10",
    }  # fmt: skip
    login = (
        f"ratchet_trainer:{quote(PASSWORDS['trainer'], safe='')}@{target.host}:{target.port}/{target.dbname}"
    )
    folders = {
        f"{name}_DIR": str(home / name.lower()) for name in ("ADAPTERS", "CHECKPOINTS", "CACHE", "LOGS")
    }
    secrets = {name: value for name, value in SETTINGS.items() if name in NAMES}
    token = {name: value for name, value in secrets.items() if name == "DASHBOARD_TOKEN"}
    return {
        "processor": common | {
            "POSTGRES_USER": "ratchet_processor", "POSTGRES_PASSWORD": PASSWORDS["processor"],
            "INGEST_DIR": str(home / "ingest"), "BENCHMARKS_DIR": str(home / "none"),
        },
        "metrics": common | token | {
            "POSTGRES_USER": "ratchet_metrics", "POSTGRES_PASSWORD_FILE": str(password_file),
            "METRICS_PORT": str(free_port()), "LOG_FORMAT": "json",
        },
        "trainer": common | secrets | folders | {
            "DATABASE_URL": f"postgresql://{login}", "CHECK_INTERVAL": "0.5", "LOG_FORMAT": "json",
            "WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
            "WEBHOOK_URLS": url, "WEBHOOK_EVENTS": "start,promotion,refusal,failure",
        },
    }  # fmt: skip


@contextmanager
def _service(name: str, environment: Mapping[str, str], log: Path) -> Iterator[None]:
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as output:
        command = [sys.executable, "-m", f"services.{name}"]
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=output, stderr=output)
    try:
        yield
        process.terminate()
        assert process.wait(60) == 0, log.read_text()[-3000:]
    finally:
        process.kill()
        process.wait()


def _pages(port: int, database: db.Database) -> dict[str, bytes]:
    """Every page and answer there is: by links from the first one, and as the API describes itself."""
    address = f"http://127.0.0.1:{port}"
    (content,) = rows(database, "SELECT encode(sha256, 'hex') AS sha256 FROM contents ORDER BY id LIMIT 1")
    known = {"track": "tiny", "number": "1", "sha256": content.sha256}
    wait_for(lambda: asked(f"{address}/health/live"), 60)
    described = json.loads(asked(f"{address}/api/v1/openapi.json"))
    paths = [path.format_map(known) for path, verbs in described["paths"].items() if "get" in verbs]
    waiting = [address, *(f"{address}{path}" for path in paths)]
    waiting += [f"{address}{path}" for path in ("/health", "/metrics", "/metrics?format=prometheus")]
    found: dict[str, bytes] = {}
    while waiting and len(found) < MOST_PAGES:
        url = waiting.pop()
        if url in found or "/stream" in url:  # a stream has no end
            continue
        found[url] = asked(url)
        links = LINK.findall(found[url].decode(errors="replace"))
        waiting += [other for link in links if (other := urljoin(url, link)).startswith(address)]
    for accepted in ACCEPTED:
        found[f"/metrics as {accepted}"] = asked(f"{address}/metrics", accepted)
    return found


def asked(url: str, accepted: str = "*/*") -> bytes:
    """Headers and body of an answer; of an error too."""
    headers = {"Accept": accepted, "Authorization": f"Bearer {SETTINGS['DASHBOARD_TOKEN']}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return bytes(error.read())
    except OSError:
        return b""


def _tables(database: db.Database) -> dict[str, bytes]:
    named = rows(
        database, "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    return {
        f"table {table.name}": "\n".join(
            row.it for row in rows(database, f"SELECT t::text AS it FROM {table.name} t")
        ).encode()
        for table in named
    }


def _files(home: Path) -> dict[str, bytes]:
    """All but what was put there; of W&B's runs the records, too, put together from their chunks."""
    put = {home / "ingest", home / "model", home / "password-of-metrics"}
    files = [path for path in home.rglob("*") if path.is_file() and put.isdisjoint([path, *path.parents])]
    names = "\n".join(str(path) for path in files).encode()
    runs = {
        f"records of {path}": b"".join(offline_wandb.records(path))
        for path in files
        if path.suffix == ".wandb"
    }
    return {str(path): path.read_bytes() for path in files} | runs | {"names of files": names}
