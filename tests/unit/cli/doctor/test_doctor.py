"""`ratchet doctor`: each check on a machine that is as the test says."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from services.cli import environment
from services.cli.doctor import accelerator, command, configuration, database, machine, model, surroundings
from services.cli.doctor.examination import examine
from services.cli.doctor.finding import Status, ok
from services.core.errors import ConfigurationError
from services.trainer.webhooks.endpoints import Endpoint


def here(tmp_path: Path, **variables: str):
    named = {"RATCHET_HOME": str(tmp_path / "home"), "INGEST_DIR": str(tmp_path / "ingest"), **variables}
    return environment.read(named, project=tmp_path)


def layers(tmp_path: Path, env_file: str = "", **variables: str):
    if env_file:
        (tmp_path / ".env").write_text(env_file)
        (tmp_path / ".env").chmod(0o600)
    return environment.layers(variables, project=tmp_path)


def only(findings):
    (finding,) = findings
    return finding


# the examination itself


def test_a_check_that_hangs_is_a_finding_and_keeps_nobody_waiting(tmp_path) -> None:
    never = threading.Event()

    def hangs(_environment):
        never.wait(30)
        return [ok("slow", "at last")]

    found = examine({"quick": lambda _: [ok("quick", "here")], "slow": hangs}, here(tmp_path), patience=0.1)
    assert [(each.check, each.status) for each in found] == [("quick", Status.OK), ("slow", Status.SKIPPED)]
    never.set()


def test_a_check_that_breaks_hides_no_other(tmp_path) -> None:
    def breaks(_environment):
        raise ZeroDivisionError("by nought")

    def refuses(_environment):
        raise ConfigurationError("set it")

    found = examine({"a": breaks, "b": refuses, "c": lambda _: [ok("c", "well")]}, here(tmp_path))
    assert [each.status for each in found] == [Status.SKIPPED, Status.ERROR, Status.OK]
    assert "ZeroDivisionError: by nought" in found[0].says


# settings


def test_every_wrong_setting_is_named_at_once(tmp_path) -> None:
    found = list(configuration.settings(layers(tmp_path, MIN_NEW_FLES="5", BATCH_SIZE="four"), tmp_path))
    assert [each.status for each in found] == [Status.ERROR, Status.ERROR]
    assert "MIN_NEW_FLES is not a setting: did you mean MIN_NEW_FILES?" in found[0].says
    assert "BATCH_SIZE='four'" in found[1].says


def test_a_line_of_env_that_nobody_reads_is_named(tmp_path) -> None:
    (tmp_path / ".env.example").write_text("#GPU_COUNT=1\n")
    found = list(configuration.settings(layers(tmp_path, "COLOUR=blue\nGPU_COUNT=2\n"), tmp_path))
    assert [(each.status, each.says.split()[0]) for each in found if each.status is not Status.OK] == [
        (Status.WARNING, "COLOUR")
    ]


def test_an_env_file_that_others_may_read_is_named(tmp_path) -> None:
    written = layers(tmp_path, "RECIPE=demo\n")
    (tmp_path / ".env").chmod(0o644)
    found = [each for each in configuration.settings(written, tmp_path) if each.status is Status.WARNING]
    assert only(found).cure == f"chmod 600 {tmp_path / '.env'}"


def test_a_recipe_that_is_none_is_an_error(tmp_path) -> None:
    assert only(configuration.recipe(here(tmp_path, RECIPE="demmo"))).status is Status.ERROR
    assert only(configuration.recipe(here(tmp_path, RECIPE="demo", LORA_R="8"))).says.endswith("LORA_R")


def test_wrong_settings_do_not_keep_the_other_checks_from_being_done(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MIN_NEW_FILES", "many")
    monkeypatch.setattr(command, "CHECKS", {"memory": machine.memory})
    found = command.findings()
    assert {each.check for each in found} == {"settings", "memory"}
    assert found[0].status is Status.ERROR


# machine


def test_a_control_group_bounds_cores_and_memory(tmp_path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    assert machine.usable_cores(tmp_path) == 0.5
    assert machine.usable_memory(tmp_path) == (1_000_000, 600_000)


def test_a_control_group_without_limits_bounds_nothing(tmp_path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.usable_cores(tmp_path) == machine.usable_cores(tmp_path / "none")
    assert machine.usable_memory(tmp_path)[0] == machine.usable_memory(tmp_path / "none")[0]


def test_too_little_memory_is_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "usable_memory", lambda: (2e9, 1e9))
    assert only(machine.memory(here(tmp_path))).status is Status.ERROR


@pytest.mark.parametrize(("free", "status"), [(5e8, Status.ERROR), (5e9, Status.WARNING), (5e10, Status.OK)])
def test_room_on_a_disk(free, status, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": free}))
    assert machine.room(tmp_path, ["CACHE_DIR"]).status is status


def test_a_folder_in_whose_place_a_file_lies_is_an_error(tmp_path) -> None:
    (tmp_path / "home").write_text("a file")
    found = [each for each in machine.disks(here(tmp_path)) if each.status is Status.ERROR]
    assert {each.says.partition("=")[0] for each in found} >= {"RATCHET_HOME", "LOGS_DIR", "CACHE_DIR"}


def test_nothing_is_made_by_looking(tmp_path) -> None:
    list(machine.disks(here(tmp_path)))
    assert list(tmp_path.iterdir()) == []


# GPU and PyTorch

H200 = accelerator.Gpu("NVIDIA H200", 150_754_820_096, 0, "580.65.06")


def test_lines_of_nvidia_smi_are_read() -> None:
    text = "NVIDIA H200, 143771, 4, 580.65.06\nGrace, [N/A], [N/A], 580.65.06\n"
    assert accelerator.parse(text) == [accelerator.Gpu("NVIDIA H200", 143771 * 2**20, 4 * 2**20, "580.65.06")]


@pytest.mark.parametrize(
    ("torch", "gpus", "status", "words"),
    [
        ({"version": "2.13", "cuda": None, "devices": 0}, [], Status.OK, "for processors"),
        ({"version": "2.13", "cuda": "13.0", "devices": 1}, [H200], Status.OK, "sees 1 of 1"),
        ({"version": "2.13", "cuda": None, "devices": 0}, [H200], Status.ERROR, "cannot use the GPU"),
        ({"version": "2.13", "cuda": "13.0", "devices": 0}, [H200], Status.ERROR, "sees no GPU"),
    ],
)
def test_pytorch_and_the_driver(torch, gpus, status, words) -> None:
    finding = accelerator.judge(torch, gpus)
    assert finding.status is status
    assert words in finding.says


def test_a_driver_that_is_too_old_is_named_with_the_one_that_is_needed() -> None:
    old = accelerator.Gpu("NVIDIA A100", 80 * 2**30, 0, "535.129.03")
    finding = accelerator.judge({"version": "2.13", "cuda": "13.0", "devices": 0}, [old])
    assert "driver 580 or newer, and this is 535.129.03" in finding.says


def test_a_gpu_that_others_use_is_told() -> None:
    assert accelerator._gpu(H200).status is Status.OK
    busy = accelerator.Gpu("NVIDIA H200", H200.memory_bytes, H200.memory_bytes // 2, H200.driver)
    assert accelerator._gpu(busy).status is Status.WARNING


def test_a_large_recipe_without_a_gpu_is_a_warning(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(accelerator, "find_gpus", list)
    assert next(accelerator.graphics(here(tmp_path, RECIPE="demo"))).status is Status.OK
    assert next(accelerator.graphics(here(tmp_path, RECIPE="qwen14b-qlora"))).status is Status.WARNING


# the base model


@pytest.fixture
def hub():
    """A hub on this machine: `hub.statuses` by token; `hub.asked` has the requests."""

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            server.asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(server.statuses[self.headers.get("Authorization")])
            self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.asked, server.statuses = [], {None: 200}
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def at_hub(tmp_path, hub, **more: str):
    chosen = here(tmp_path, RECIPE="qwen1.5b-sft", HF_ENDPOINT=hub.url, CACHE_DIR=str(tmp_path), **more)
    return only(model.base_model(chosen))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_a_model_that_the_hub_gives_is_well(tmp_path, hub) -> None:
    assert at_hub(tmp_path, hub).status is Status.OK
    assert hub.asked[0][0].endswith("/resolve/main/config.json")


def test_a_token_is_sent_to_the_hub_and_not_where_it_leads_to(tmp_path, hub) -> None:
    hub.statuses = {"Bearer hf_secret_of_mine": 307}
    assert at_hub(tmp_path, hub, HF_TOKEN="hf_secret_of_mine").status is Status.OK
    assert [path for path, _ in hub.asked if path == "/elsewhere"] == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_model_wants_a_token(status, tmp_path, hub) -> None:
    hub.statuses = {None: status}
    finding = at_hub(tmp_path, hub)
    assert finding.status is Status.ERROR
    assert "without HF_TOKEN" in finding.says
    assert "set HF_TOKEN" in str(finding.cure)


def test_a_model_that_the_hub_does_not_know_is_an_error(tmp_path, hub) -> None:
    hub.statuses = {None: 404}
    assert at_hub(tmp_path, hub).cure == "is it misspelt?"


def test_a_hub_that_cannot_be_reached_is_an_error(tmp_path, hub) -> None:
    hub.url = "http://127.0.0.1:1"
    assert "cannot be reached" in at_hub(tmp_path, hub).says


def test_offline_without_the_model_is_an_error_and_asks_nobody(tmp_path, hub) -> None:
    assert at_hub(tmp_path, hub, HF_HUB_OFFLINE="1").status is Status.ERROR
    assert hub.asked == []


def test_a_model_in_the_cache_is_found_and_half_of_one_is_not(tmp_path, hub) -> None:
    folder = tmp_path / "huggingface/hub/models--Qwen--Qwen2.5-Coder-1.5B-Instruct"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("abc123")
    snapshot = folder / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert "fetches it" in at_hub(tmp_path, hub).says
    (snapshot / "model.safetensors").write_text("")
    assert str(snapshot) in at_hub(tmp_path, hub).says
    (folder / "blobs").mkdir()
    (folder / "blobs" / "f00.incomplete").write_text("")
    assert "fetches it" in at_hub(tmp_path, hub).says


def test_a_model_that_does_not_fit_on_the_disk_is_an_error(tmp_path, monkeypatch) -> None:
    """The 14B takes about 30 GB."""
    monkeypatch.setattr(model.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 12e9}))
    (finding,) = model.room("Qwen/Qwen2.5-Coder-14B-Instruct", tmp_path / "not" / "made" / "yet")
    assert "takes about 30 GB, and 12.0 GB are free" in finding.says
    assert list(model.room("Qwen/Qwen2.5-Coder-1.5B-Instruct", tmp_path)) == []
    assert list(model.room("somebody/unknown", tmp_path)) == []


def test_a_folder_without_a_model_is_an_error(tmp_path) -> None:
    assert model.in_folder(tmp_path).status is Status.ERROR
    (tmp_path / "config.json").write_text("{}")
    assert "safetensors" in model.in_folder(tmp_path).says
    (tmp_path / "model.safetensors").write_text("")
    assert model.in_folder(tmp_path).status is Status.OK


def test_a_wheel_that_is_not_installed_is_an_error() -> None:
    assert model.in_wheel("wheel:no_such_package_here/x.gguf").status is Status.ERROR


# what is around


def test_a_port_in_use_is_an_error_for_the_dashboard_alone(tmp_path, hub) -> None:
    taken = str(hub.server_port)
    found = list(surroundings.ports(here(tmp_path, METRICS_PORT=taken, SERVE_PORT=taken)))
    assert [each.status for each in found] == [Status.ERROR, Status.WARNING]
    assert found[0].cure == "stop what uses it, or set METRICS_PORT to a free one"


def test_a_webhook_that_takes_no_connection_is_told_without_its_path(hub, tmp_path) -> None:
    there, gone = f"{hub.url}/secret-path", "http://127.0.0.1:1/secret-path"
    settings = here(tmp_path, WEBHOOK_URLS=f"{there},{gone}", WEBHOOK_FORMAT="slack")
    found = list(surroundings.addresses(settings))
    assert [each.status for each in found] == [Status.OK, Status.WARNING]
    assert not any("secret-path" in each.says for each in found)


def test_https_to_what_speaks_no_tls_is_no_connection(hub) -> None:
    assert surroundings.unreachable(Endpoint.of(hub.url.replace("http:", "https:"))) is not None


@pytest.mark.parametrize(
    ("text", "numbers"), [("v2.29.1", (2, 29)), ("1.29.2", (1, 29)), ("2.26.1-4", (2, 26))]
)
def test_versions_of_compose(text, numbers) -> None:
    assert surroundings.version(text) == numbers


# the database's own facts


@pytest.mark.parametrize(("skew", "status"), [(0.5, Status.OK), (-90.0, Status.WARNING), (2.3, Status.OK)])
def test_clocks_may_differ_by_what_the_question_took(skew, status) -> None:
    assert database.clock(skew, doubt=0.4).status is status


def test_a_newer_schema_and_an_edited_migration_are_errors() -> None:
    import hashlib

    from services.core import sql

    whole = [(each.version, hashlib.sha256(each.text.encode()).hexdigest()) for each in sql.migrations()]
    assert database.schema(whole).status is Status.OK
    assert database.schema(whole[:-2]).says == "2 migrations are to be applied"
    assert database.schema([*whole, (9999, "x")]).status is Status.ERROR
    assert "edited" in database.schema([(1, "x"), *whole[1:]]).says


# what is printed


def test_every_finding_that_is_not_well_has_its_cure_below_it() -> None:
    found = [ok("a", "well"), database.schema([(9999, "x")])]
    told = [str(line) for line in command.lines(found)]
    assert told[0].split() == ["ok", "a", "well"]
    assert told[2].strip().startswith("→ run the newer Ratchet")


def test_what_others_wrote_drives_no_terminal() -> None:
    (line,) = command.lines([ok("a", "x\x1b[2J\u202ey")])
    assert r"x\x1b[2J\u202ey" in str(line)


def test_the_summary_counts() -> None:
    assert command.summary(0, 0, 1.0).startswith("all is well")
    assert command.summary(0, 1, 1.0).startswith("1 warning")
    assert command.summary(2, 0, 1.0).startswith("2 errors and 0 warnings")
