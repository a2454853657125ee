"""BigCodeBench from the hub, with a dataset viewer and a file list of our own."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from services.core.errors import ConfigurationError
from services.trainer.tasks import hub, inputs

FILES = [
    "README.md", "data/train-00000-of-00001.parquet", "data/v0.1.0_hf-00000-of-00001.parquet",
    "data/v0.1.4-00000-of-00001.parquet", "data/v0.1.10-00000-of-00001.parquet",
    "data/v0.1.2-00000-of-00001.parquet",
]  # fmt: skip
ROWS = [{"task_id": f"BigCodeBench/{number}"} for number in range(250)]


class Viewer(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.asked.append(asked | {"token": self.headers.get("Authorization")})
        offset = int(asked["offset"])
        rows = [
            {"row_idx": offset + at, "row": row, "truncated_cells": self.server.cut}
            for at, row in enumerate(ROWS[offset : offset + int(asked["length"])])
        ]
        body = json.dumps(
            {"rows": rows, "num_rows_total": len(ROWS)} if self.server.works else {"error": "no"}
        )
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def viewer(monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Viewer)
    server.asked, server.cut, server.works = [], [], True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setattr(hub, "VIEWER", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(hub, "hub_answers", lambda: True)
    monkeypatch.setattr(hub, "_files", lambda repo, token: FILES)
    monkeypatch.setattr(inputs, "reads_parquet", lambda: False)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_without_pyarrow_all_rows_of_the_newest_version_come_from_the_viewer(viewer, tmp_path):
    fetched = hub.fetch("bigcode/bigcodebench", None, token="secret", cache=tmp_path)
    assert [fields for _, fields in fetched.records] == ROWS
    assert fetched.says == "bigcode/bigcodebench v0.1.10"
    assert [each["offset"] for each in viewer.asked] == ["0", "100", "200"]
    assert {(each["split"], each["token"]) for each in viewer.asked} == {("v0.1.10", "Bearer secret")}


def test_with_pyarrow_the_versions_file_itself_is_read(viewer, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(inputs, "reads_parquet", lambda: True)
    monkeypatch.setattr(
        hub, "_downloaded", lambda repo, name, token, cache: asked.append(name) or [("x", {})]
    )
    assert hub.fetch("bigcode/bigcodebench", "v0.1.4", token=None, cache=tmp_path).records == [("x", {})]
    assert asked == ["data/v0.1.4-00000-of-00001.parquet"]


def test_rows_that_the_viewer_cuts_are_refused(viewer, tmp_path):
    viewer.cut = ["test"]
    with pytest.raises(ConfigurationError, match=r"cuts row 0.*pyarrow"):
        hub.fetch("bigcode/bigcodebench", None, token=None, cache=tmp_path)


def test_another_answer_is_shown(viewer, tmp_path):
    viewer.works = False
    with pytest.raises(ConfigurationError, match="'error': 'no'"):
        hub.fetch("bigcode/bigcodebench", None, token=None, cache=tmp_path)


def test_an_unknown_version_is_said_with_those_there_are():
    with pytest.raises(
        ConfigurationError, match=r"no version 'v9': expected v0\.1\.0_hf, v0\.1\.2, v0\.1\.4, v0\.1\.10"
    ):
        hub.choose("bigcode/bigcodebench", FILES, "v9")


def test_a_data_set_without_versions_is_no_bigcodebench():
    with pytest.raises(ConfigurationError, match="expected BigCodeBench"):
        hub.choose("someone/else", ["README.md"], None)


def test_a_hub_that_does_not_answer_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "hub_answers", lambda: False)
    with pytest.raises(ConfigurationError, match="cannot be had from the hub: it does not answer"):
        hub.fetch("bigcode/bigcodebench", None, token=None, cache=tmp_path)
