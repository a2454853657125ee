"""What docker-compose.yml promises, read from the file itself; deploy/test-compose.sh runs it."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.core.settings import NAMES, Settings

PROJECT = Path(__file__).resolve().parents[3]
COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))
MACHINES = yaml.safe_load((PROJECT / "deploy" / "machines.yml").read_text(encoding="utf-8"))
GPU = yaml.safe_load((PROJECT / "deploy" / "gpu.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("processor", "trainer", "metrics")  # those that run all the time and log in with a role of their own
ONE_SHOT = ("volumes", "migrate")
SANDBOX = "sandbox"
SERVE = ("vllm", "serving")  # of the profile serve
MORE = ("webhooks", "tensorboard")  # each of a profile of its own
MONITORING = ("prometheus", "grafana")  # of the profile monitoring
SECRETS = sorted(
    name for name, field in NAMES.items() if "SecretStr" in str(Settings.model_fields[field].annotation)
)

LOOSENED = ["seccomp=deploy/sandbox-seccomp.json", "apparmor=${SANDBOX_APPARMOR:-unconfined}"]
every_service = pytest.mark.parametrize("name", sorted(SERVICES))


def test_the_services_are_these() -> None:
    """Six services, a one-shot that hands over the mount points, and those that profiles add."""
    assert set(SERVICES) == {"postgres", SANDBOX, *ONE_SHOT, *OURS, *SERVE, *MORE, *MONITORING}
    profiles = {name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service}
    of_profiles = {"serve": SERVE, "monitoring": MONITORING, **{name: [name] for name in MORE}}
    assert profiles == {name: [profile] for profile, names in of_profiles.items() for name in names}


@every_service
def test_no_service_runs_as_root_but_the_one_that_hands_over_mount_points(name: str) -> None:
    """Every service has a user; only `volumes` is root, and it has no network."""
    if name == "volumes":
        assert (SERVICES[name]["user"], SERVICES[name]["network_mode"]) == ("0:0", "none")
    else:
        assert SERVICES[name]["user"] in ("postgres", "${RATCHET_UID:-10001}:${RATCHET_GID:-10001}")


@every_service
def test_every_service_is_confined(name: str) -> None:
    """Read-only root, no capability, no way to gain privileges; `volumes` may change owners."""
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    loosened = [] if name != SANDBOX else LOOSENED
    assert service["security_opt"] == ["no-new-privileges:true", *loosened]
    assert service.get("cap_add", []) == (["CHOWN"] if name == "volumes" else [])
    assert not {"privileged", "pid", "ipc", "userns_mode", "devices"} & set(service)


@every_service
def test_every_service_has_limits(name: str) -> None:
    """Memory, processors and processes are bounded, and so is the log."""
    assert {"mem_limit", "cpus", "pids_limit"} <= set(SERVICES[name])
    assert set(SERVICES[name]["logging"]["options"]) == {"max-size", "max-file"}


@every_service
def test_every_service_has_an_init_and_a_restart_policy(name: str) -> None:
    """Signals reach the process, orphans are reaped, and what shall run is started again."""
    assert SERVICES[name]["init"] is True
    assert SERVICES[name]["restart"] == ("no" if name in ONE_SHOT else "unless-stopped")


@pytest.mark.parametrize("name", ["postgres", SANDBOX, *OURS, *SERVE, *MORE, *MONITORING])
def test_what_runs_all_the_time_has_a_healthcheck_and_time_to_stop(name: str) -> None:
    """A healthcheck, and a grace period above the 10 s in which a service stops."""
    assert {"test", "interval", "timeout", "retries", "start_period"} <= set(SERVICES[name]["healthcheck"])
    assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) >= 20


def test_only_pages_and_answers_are_published_and_only_on_this_machine() -> None:
    """PostgreSQL above all is not reachable from outside, nor is vLLM, which loads what it is told to."""
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {
        "metrics": ["${METRICS_HOST:-127.0.0.1}:${METRICS_PORT:-8090}:8090"],
        "serving": ["${SERVE_HOST:-127.0.0.1}:${SERVE_PORT:-8000}:8000"],
        "tensorboard": ["${TENSORBOARD_HOST:-127.0.0.1}:${TENSORBOARD_PORT:-6006}:6006"],
        "prometheus": ["127.0.0.1:${PROMETHEUS_PORT:-9090}:9090"],
        "grafana": ["127.0.0.1:${GRAFANA_PORT:-3000}:3000"],
    }
    assert COMPOSE["networks"]["serving"] == {"internal": True}
    assert COMPOSE["networks"]["ledger"] == {"internal": True}
    assert SERVICES["postgres"]["networks"] == SERVICES["processor"]["networks"] == ["ledger"]


def test_the_sandbox_reaches_nothing_and_knows_nothing() -> None:
    """No network, no secret, no disk: of the world it has a small volume in memory, for its socket."""
    sandbox = SERVICES[SANDBOX]
    assert sandbox["network_mode"] == "none"
    assert set(sandbox["environment"]) == {"LOG_FORMAT", "LOG_LEVEL"}
    assert sandbox["volumes"] == ["sandbox-socket:/run/sandbox"]
    assert COMPOSE["volumes"]["sandbox-socket"]["driver_opts"]["type"] == "tmpfs"
    assert "env_file" not in sandbox


def test_only_the_trainer_reaches_the_sandbox() -> None:
    """It can connect to the socket, not replace it; on several machines the other trainer does too."""
    mounts = {name: [m for m in s.get("volumes", []) if "sandbox" in m] for name, s in SERVICES.items()}
    assert {name: found for name, found in mounts.items() if found and name != SANDBOX} == {
        "trainer": ["sandbox-socket:/run/sandbox:ro"]
    }
    assert mounts["trainer"][0] in MACHINES["services"]["trainer-host"]["volumes"]
    for trainer in (SERVICES["trainer"], MACHINES["services"]["trainer-host"]):
        assert trainer["environment"]["SANDBOX_SOCKET"] in SERVICES[SANDBOX]["command"]


def test_an_ill_sandbox_does_not_keep_the_trainer_from_starting() -> None:
    """Most recipes run no programs."""
    assert SERVICES["trainer"]["depends_on"][SANDBOX] == {"condition": "service_started"}


@pytest.mark.parametrize("name", ["postgres", "migrate"])
def test_a_missing_password_says_how_to_make_one(name: str) -> None:
    """There is no default password, and the error names `make env`."""
    password = SERVICES[name]["environment"]["POSTGRES_PASSWORD"]
    assert password.startswith("${POSTGRES_PASSWORD:?")
    assert "make env" in password


@pytest.mark.parametrize("name", [*OURS, "webhooks"])
def test_a_service_logs_in_with_its_own_role(name: str) -> None:
    """It reads its own password, read-only, and no other; the owner's password is not handed to it."""
    environment = SERVICES[name]["environment"]
    assert environment["POSTGRES_USER"] == f"ratchet_{name}"
    assert environment["POSTGRES_PASSWORD_FILE"] == f"/secrets/{name}/password"
    assert [mount for mount in SERVICES[name]["volumes"] if "secret" in mount] == [
        f"{name}-secret:/secrets/{name}:ro"
    ]
    assert "env_file" not in SERVICES[name]


def test_servers_cannot_write_adapters_and_reach_no_database() -> None:
    """They see what is published, and nothing of how it came to be."""
    for name in SERVE:
        assert "${ADAPTERS_DIR:-./adapters}:/data/adapters:ro" in SERVICES[name]["volumes"]
        assert "ledger" not in SERVICES[name]["networks"]
        assert not re.search("secret|ingest", " ".join(SERVICES[name]["volumes"]))
        held = set(SECRETS) & set(SERVICES[name]["environment"])
        assert held == ({"HF_TOKEN"} if name == "vllm" else set())


def test_tensorboard_sees_the_logs_and_nothing_else() -> None:
    """It cannot write them, reaches no database, and knows no setting."""
    tensorboard = SERVICES["tensorboard"]
    assert tensorboard["volumes"] == ["${LOGS_DIR:-./logs}:/data/logs:ro"]
    assert tensorboard["networks"] == ["outside"]
    assert not {"environment", "env_file"} & set(tensorboard)
    assert tensorboard["image"] == SERVICES["trainer"]["image"]
    assert GPU["services"]["tensorboard"]["image"] == GPU["services"]["trainer"]["image"]


def test_the_sender_of_webhooks_knows_what_the_trainer_knows_of_them() -> None:
    """And no other secret: the two share the work."""
    given = {"WEBHOOK_EVENTS", "WEBHOOK_FORMAT", "WEBHOOK_SECRET", "WEBHOOK_URLS"}
    assert {name for name in SERVICES["webhooks"]["environment"] if name.startswith("WEBHOOK")} == given
    assert set(SECRETS) & set(SERVICES["webhooks"]["environment"]) == {"WEBHOOK_SECRET", "WEBHOOK_URLS"}
    assert given <= set(SERVICES["trainer"]["environment"])


def test_vllm_takes_adapters_while_it_runs() -> None:
    """As many as a change needs at once, of the rank that the front checks."""
    command, environment = SERVICES["vllm"]["command"], SERVICES["serving"]["environment"]
    assert SERVICES["vllm"]["environment"]["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert {"--enable-lora", "--served-model-name=base", "--port=8001"} <= set(command)
    assert "--max-lora-rank=${SERVE_MAX_LORA_RANK:-256}" in command
    assert "SERVE_MAX_LORA_RANK" in environment
    assert environment["SERVE_BACKEND"] == "http://vllm:8001"
    assert set(environment) <= set(NAMES)


@pytest.mark.parametrize("name", OURS)
def test_secrets_reach_only_the_service_that_needs_them(name: str) -> None:
    """The trainer gets those for the model hub, W&B and webhooks, metrics the dashboard's."""
    held = sorted(set(SECRETS) & set(SERVICES[name]["environment"]))
    trainers = ["HF_TOKEN", "WANDB_API_KEY", "WEBHOOK_SECRET", "WEBHOOK_URLS"]
    assert held == {"trainer": trainers, "metrics": ["DASHBOARD_TOKEN"]}.get(name, [])


def test_migrate_blanks_the_secrets_it_has_no_use_for() -> None:
    """It reads the whole .env, to name what is misspelt there, but keeps only the owner's password."""
    environment = SERVICES["migrate"]["environment"]
    assert SERVICES["migrate"]["env_file"] == [".env"]
    assert [name for name in SECRETS if environment.get(name) != ""] == ["POSTGRES_PASSWORD"]


def test_every_setting_reaches_the_trainer() -> None:
    """All but those that make no sense in its container, and how many threads torch may start."""
    elsewhere = {"DATABASE_URL", "POSTGRES_PASSWORD", "ROLE_SECRETS_DIR", "RATCHET_HOME", "INGEST_DIR"}
    elsewhere |= {"ALLOW_UNSANDBOXED"}
    elsewhere |= {
        "METRICS_HOST",
        "METRICS_PORT",
        "METRICS_TRUSTED_HOSTS",
        "METRICS_SHOW_CODE",
        "DASHBOARD_TOKEN",
    }
    elsewhere |= {name for name in NAMES if name.startswith("SERVE_")}
    assert (set(NAMES) - elsewhere) | {"OMP_NUM_THREADS"} == set(SERVICES["trainer"]["environment"])


def test_every_name_a_container_gets_is_a_setting() -> None:
    """A misspelt one would be dropped in silence."""
    given = {name for service in OURS for name in SERVICES[service]["environment"]}
    assert given - {"OMP_NUM_THREADS"} <= set(NAMES)


def test_the_processor_cannot_write_what_comes_in() -> None:
    """The ingest folder is mounted read-only, and into no other service."""
    mounts = {name: [m for m in s.get("volumes", []) if "ingest" in m] for name, s in SERVICES.items()}
    assert {name: found for name, found in mounts.items() if found} == {
        "processor": ["${INGEST_DIR:-./ingest}:/data/ingest:ro"]
    }


def test_the_gpu_overlay_reserves_a_gpu_and_loosens_nothing() -> None:
    """It changes images, limits and the recipe only."""
    devices = GPU["services"]["trainer"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": "${GPU_COUNT:-1}", "capabilities": ["gpu"]}]
    changed = {key for service in GPU["services"].values() for key in service}
    assert changed == {"image", "build", "environment", "mem_limit", "cpus", "shm_size", "deploy"}


def test_the_file_reads_in_both_compose_versions() -> None:
    """None of the keys that one of docker-compose 1.29 and docker compose v2 does not know."""
    text = (PROJECT / "docker-compose.yml").read_text(encoding="utf-8")
    assert not {"version", "name", "include"} & set(COMPOSE)
    assert not re.search(r"start_interval|required:|host_ip|\$\{\w+:\+", text)


@pytest.mark.parametrize("tool", ["docker-compose", "docker compose"])
def test_compose_itself_takes_the_file_with_every_profile(tool: str, tmp_path: Path) -> None:
    """Where it is installed; no engine is needed for it."""
    command = tool.split()
    if subprocess.run([*command, "version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{tool} is not here")
    shutil.copy(PROJECT / "docker-compose.yml", tmp_path)
    shutil.copytree(PROJECT / "deploy", tmp_path / "deploy")
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=of-nothing\n", encoding="utf-8")
    profiles = sorted({name for service in SERVICES.values() for name in service.get("profiles", ())})
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    found = subprocess.run(
        [*command, *chosen, "config", "--services"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert set(found.stdout.split()) == set(SERVICES)


@pytest.mark.parametrize("dockerfile", ["Dockerfile.processor", "Dockerfile.trainer"])
def test_images_end_as_a_user_and_install_by_hash(dockerfile: str) -> None:
    """The last USER is not root, and every installation of packages is pinned by hashes."""
    text = (PROJECT / dockerfile).read_text(encoding="utf-8")
    assert re.findall(r"^USER (\w+)$", text, re.MULTILINE)[-1] == "ratchet"
    installs = re.findall(r"pip install [^\n;&]*", text)
    assert installs
    assert all("--no-deps" in line and "--require-hashes" in line for line in installs)


@pytest.mark.parametrize("dockerfile", ["Dockerfile.processor", "Dockerfile.trainer"])
def test_a_change_of_code_installs_nothing_again(dockerfile: str) -> None:
    """The code is copied after the last installation of packages."""
    text = (PROJECT / dockerfile).read_text(encoding="utf-8")
    assert text.index("COPY services/") > text.rindex("pip install")
