"""What deploy/kubernetes promises: valid for Kubernetes, in agreement with the code and with Compose."""

import copy
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from services.cli.stack.migrate import SERVICES as ROLES
from services.core.settings import NAMES, PROJECT, Settings, from_environment
from tests.kustomize import Manifest, build, containers, pod

HERE = PROJECT / "deploy" / "kubernetes"
COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
GUIDE = (PROJECT / "docs/how-to/kubernetes.md").read_text(encoding="utf-8")
COMPONENTS = sorted(path.name for path in (HERE / "components").iterdir())
VERSIONS = ("1.30", "1.37")  # the oldest that knows all fields, the newest that the schemas know
DOCKERFILES = {
    "ratchet-services": "Dockerfile.processor",
    "ratchet-trainer": "Dockerfile.trainer",
    "ratchet-trainer-cuda": "Dockerfile.trainer",
}
SECRETS = {name for name, each in NAMES.items() if "SecretStr" in str(Settings.model_fields[each].annotation)}
NOT_OURS = {"OMP_NUM_THREADS", "PGDATA", "POSTGRES_INITDB_ARGS"}  # torch's, PostgreSQL's


def everything(tmp_path: Path, *components: str) -> list[Manifest]:
    """The base with these components."""
    asked = {
        "resources": [f"{HERE}/base"],
        "components": [f"{HERE}/components/{name}" for name in components],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(asked))
    return build(tmp_path)


@pytest.fixture(scope="module")
def all_of_it(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """Every component that goes with the others: all but the one that leaves out PostgreSQL."""
    return everything(
        tmp_path_factory.mktemp("all"), *(name for name in COMPONENTS if name != "external-postgres")
    )


@pytest.fixture(scope="module")
def workloads(all_of_it: list[Manifest]) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in all_of_it if pod(one) is not None}


@pytest.fixture(scope="module")
def parts(workloads: dict[str, Manifest]) -> list[tuple[str, Manifest, Manifest]]:
    """Each container: its workload's name, its pod's specification, itself."""
    return [(name, pod(one)["spec"], each) for name, one in workloads.items() for each in containers(one)]


def complaints(manifests: list[Manifest], version: str) -> list[str]:
    """What Kubernetes' own schemas have against the manifests; an unknown field is wrong."""
    found = []
    for one in manifests:
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as exc:
            found.append(f"{one['kind']} {one['metadata']['name']}: {exc.message}")
    return found


# against Kubernetes


@pytest.mark.parametrize("version", VERSIONS)
def test_every_manifest_is_valid_for_kubernetes(all_of_it: list[Manifest], version: str) -> None:
    """By the schemas of the API, the oldest version that will do and the newest."""
    assert complaints(all_of_it, version) == []


@pytest.mark.parametrize("name", ["external-postgres", None])
def test_other_choices_are_valid_too(tmp_path: Path, name: str | None) -> None:
    assert complaints(everything(tmp_path, *filter(None, [name])), VERSIONS[0]) == []


def test_a_misspelt_field_would_be_found(all_of_it: list[Manifest]) -> None:
    """So that the tests above prove something."""
    wrong = copy.deepcopy(next(one for one in all_of_it if one["kind"] == "StatefulSet"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readOnlyRootFileSystem"] = True
    (complaint,) = complaints([wrong], VERSIONS[0])
    assert "readOnlyRootFileSystem" in complaint


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", ["base", "overlays/gpu"])
def test_kustomize_builds_what_these_tests_look_at(folder: str) -> None:
    """But for the order of lists, a label, and the namespace that everything has."""
    done = subprocess.run(["kubectl", "kustomize", HERE / folder], capture_output=True, text=True, check=True)
    built = list(yaml.safe_load_all(done.stdout))
    for one in built:
        one["metadata"].get("labels", {}).pop("app.kubernetes.io/part-of", None)
        if one["kind"] != "Namespace":
            assert one["metadata"].pop("namespace") == "ratchet"
    assert sorted(map(repr, map(ordered, built))) == sorted(map(repr, map(ordered, build(HERE / folder))))


def ordered(value: Any) -> Any:
    """Without what is empty, and with every mapping and list in one order."""
    if isinstance(value, dict):
        return {name: ordered(value[name]) for name in sorted(value) if value[name] not in ({}, [])}
    return sorted(map(ordered, value), key=repr) if isinstance(value, list) else value


def test_the_example_to_copy_is_complete() -> None:
    """Every image in it comes from a registry of one's own, but PostgreSQL's."""
    images = {each["image"] for one in build(HERE / "overlays/gpu") for each in containers(one)}
    assert {image for image in images if not image.startswith("registry.example.com/")} == {
        COMPOSE["postgres"]["image"]
    }


# against the code


def test_every_service_of_compose_is_here(workloads: dict[str, Manifest]) -> None:
    """But for serving, monitoring, and what hands over mount points, which fsGroup does."""
    elsewhere = {
        name for name, one in COMPOSE.items() if {"serve", "monitoring"} & {*one.get("profiles", [])}
    }
    assert set(workloads) | {"sandbox"} == set(COMPOSE) - elsewhere - {"volumes"}


def test_images_are_built_by_our_dockerfiles(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """Under the names that Compose gives them."""
    for name, _, container in parts:
        image = container["image"].split(":")[0]
        if name == "postgres":
            assert container["image"] == COMPOSE["postgres"]["image"]
        else:
            assert (PROJECT / DOCKERFILES[image]).is_file()
            assert image.removesuffix("-cuda") == COMPOSE[container["name"]]["image"].replace(
                "${COMPOSE_PROJECT_NAME:-ratchet}", "ratchet"
            )


def test_commands_are_those_of_compose(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """What deploy/test-compose.sh runs is what runs here; an image has its own where Compose names none."""
    for name, _, container in parts:
        if name == "postgres":
            continue
        image = (PROJECT / DOCKERFILES[container["image"].split(":")[0]]).read_text(encoding="utf-8")
        (default,) = re.findall(r"^CMD (\[.*\])$", image, re.MULTILINE)
        known = COMPOSE[container["name"]].get("command", json.loads(default))
        assert container["command"] == [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in known], name


def test_probes_are_those_of_compose(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """Each service that Compose looks at is looked at here; none is killed for being ill, but metrics."""
    for name, _, container in parts:
        if (check := COMPOSE[container["name"]].get("healthcheck")) is None:
            continue
        probe = container["readinessProbe"]
        if name == "postgres":
            assert probe["exec"]["command"][-1] == check["test"][1].replace("$$", "$")
        elif "exec" in probe:
            assert probe["exec"]["command"] == check["test"][1:]
        assert ("livenessProbe" in container) == (name == "metrics")
    paths = (PROJECT / "services/metrics/app.py").read_text(encoding="utf-8")
    (metrics,) = [container for name, _, container in parts if name == "metrics"]
    for kind in ("livenessProbe", "readinessProbe"):
        assert f'"{metrics[kind]["httpGet"]["path"]}"' in paths


def test_every_variable_is_a_setting(
    all_of_it: list[Manifest], parts: list[tuple[str, Manifest, Manifest]]
) -> None:
    """And the values that are set are values that can be."""
    (settings,) = [one["data"] for one in all_of_it if one["kind"] == "ConfigMap"]
    assert set(settings) <= set(NAMES)
    from_environment(settings)
    for _, _, container in parts:
        plain = {each["name"]: each["value"] for each in container.get("env", []) if "value" in each}
        assert {each["name"] for each in container.get("env", [])} <= set(NAMES) | NOT_OURS
        from_environment({**settings, **{name: plain[name] for name in set(plain) & set(NAMES)}})


def test_a_service_logs_in_with_its_own_role(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """And has the password of no other; only migrate has the owner's and all of them."""
    for name, spec, container in parts:
        if (user := _environment(container).get("POSTGRES_USER")) is None or name in ("postgres", "migrate"):
            continue
        assert user == f"ratchet_{name}"
        (login,) = [each["secret"] for each in spec["volumes"] if "secret" in each]
        assert login["secretName"] == "ratchet-roles"
        assert login["items"] == [{"key": name, "path": "password"}]
        assert _environment(container)["POSTGRES_PASSWORD_FILE"] == f"/secrets/{name}/password"


def test_migrate_gives_every_role_its_password(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """It finds them where it would else make them."""
    ((spec, container),) = [(spec, each) for name, spec, each in parts if name == "migrate"]
    (roles,) = [each["secret"] for each in spec["volumes"] if each["name"] == "roles"]
    assert roles["items"] == [{"key": name, "path": f"{name}/password"} for name in ROLES]
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert _environment(container)["ROLE_SECRETS_DIR"] == mounted["roles"]


def _environment(container: Manifest) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container.get("env", [])}


# within themselves


def test_what_is_mounted_is_declared_and_the_other_way_round(
    all_of_it: list[Manifest], workloads: dict[str, Manifest]
) -> None:
    """Volumes, claims, keys of the settings."""
    claims = {one["metadata"]["name"] for one in all_of_it if one["kind"] == "PersistentVolumeClaim"}
    claimed = set()
    for one in workloads.values():
        spec = pod(one)["spec"]
        declared = {each["name"] for each in spec["volumes"]}
        declared |= {each["metadata"]["name"] for each in one["spec"].get("volumeClaimTemplates", [])}
        assert declared == {mount["name"] for each in spec["containers"] for mount in each["volumeMounts"]}
        claimed |= {
            each["persistentVolumeClaim"]["claimName"]
            for each in spec["volumes"]
            if "persistentVolumeClaim" in each
        }
    assert claimed == claims


def test_a_directory_that_is_set_is_one_that_is_mounted(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """With a root file system that cannot be written, any other would fail."""
    for name, _, container in parts:
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        folders = {value for key, value in _environment(container).items() if key.endswith("_DIR")}
        assert folders <= mounted, name
        assert "/tmp" in mounted, name


def test_selectors_find_what_they_are_for(all_of_it: list[Manifest], workloads: dict[str, Manifest]) -> None:
    """A workload its pods, a service one workload with that port, a policy some pod."""
    labels = {name: pod(one)["metadata"]["labels"] for name, one in workloads.items()}
    for name, one in workloads.items():
        if one["kind"] != "Job":
            assert one["spec"]["selector"]["matchLabels"].items() <= labels[name].items()
    for one in all_of_it:
        if one["kind"] == "Service":
            found = [name for name in workloads if one["spec"]["selector"].items() <= labels[name].items()]
            assert found == [one["metadata"]["name"]]
            ports = {each["name"] for part in containers(workloads[found[0]]) for each in part["ports"]}
            assert {each["targetPort"] for each in one["spec"]["ports"]} <= ports
        for wanted in _pod_selectors(one):
            assert any(wanted.items() <= each.items() for each in labels.values()), one["metadata"]["name"]


def _pod_selectors(manifest: Manifest) -> list[dict[str, str]]:
    if manifest["kind"] != "NetworkPolicy":
        return []
    spec = manifest["spec"]
    rules = itertools.chain(spec.get("ingress", []), spec.get("egress", []))
    peers = [peer for rule in rules for peer in rule.get("from", rule.get("to", []))]
    selectors = [spec["podSelector"], *(peer["podSelector"] for peer in peers if "podSelector" in peer)]
    return [each["matchLabels"] for each in selectors if "matchLabels" in each]


# trust


def test_every_pod_is_confined(workloads: dict[str, Manifest]) -> None:
    """As Kubernetes' standard `restricted` has it; without the cluster's token or neighbours' variables."""
    for name, one in workloads.items():
        spec = pod(one)["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(spec)
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not [each for each in spec["volumes"] if "hostPath" in each]
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])


def test_secrets_come_by_reference_and_have_no_default(
    all_of_it: list[Manifest], parts: list[tuple[str, Manifest, Manifest]]
) -> None:
    """None is written down here, and none in the settings that all services see."""
    assert not [one for one in all_of_it if one["kind"] == "Secret"]
    (settings,) = [one["data"] for one in all_of_it if one["kind"] == "ConfigMap"]
    assert not SECRETS & set(settings)
    for name, _, container in parts:
        for each in container.get("env", []):
            if each["name"] in SECRETS:
                assert set(each["valueFrom"]) == {"secretKeyRef"}, name


def test_a_secret_reaches_only_who_needs_it(parts: list[tuple[str, Manifest, Manifest]]) -> None:
    """As in Compose."""
    held = {
        name: {each["name"] for each in one.get("env", [])} & SECRETS
        for name, _, one in parts
        if name != "postgres"
    }
    for name, _, container in parts:
        if name != "postgres":
            known = set(COMPOSE[container["name"]].get("environment", {})) & SECRETS
            assert {each["name"] for each in container.get("env", [])} & SECRETS == known - (
                SECRETS if name == "migrate" else set()
            ), name
    assert held["processor"] == set()


def test_every_secret_that_is_named_is_in_the_guide(all_of_it: list[Manifest]) -> None:
    """With each of its keys, as one has to make it."""
    text = yaml.safe_dump_all(all_of_it)
    named = set(re.findall(r"secretName: (\S+)", text)) | set(
        re.findall(r"name: (ratchet-(?:outside|dashboard))", text)
    )
    assert named == {"ratchet-owner", "ratchet-roles", "ratchet-outside", "ratchet-dashboard"}
    for name in named:
        assert f"create secret generic {name}" in GUIDE
    for key in (*ROLES, "password", "hf-token", "wandb-api-key", "webhook-urls", "webhook-secret", "token"):
        assert f"--from-literal={key}=" in GUIDE


def test_the_processor_reads_what_comes_in_and_reaches_the_database_alone(
    workloads: dict[str, Manifest],
) -> None:
    """What it reads is not trusted."""
    labels = pod(workloads["processor"])["metadata"]["labels"]
    assert set(labels) == {"app.kubernetes.io/name", "ratchet/database"}
    (container,) = containers(workloads["processor"])
    (ingest,) = [each for each in container["volumeMounts"] if each["name"] == "ingest"]
    assert ingest["readOnly"] is True


def test_all_traffic_is_refused_unless_it_is_named(all_of_it: list[Manifest]) -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in all_of_it if one["kind"] == "NetworkPolicy"}
    assert policies["nothing-by-default"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    outside = [name for name, one in policies.items() if "ipBlock" in str(one)]
    assert outside == ["to-the-outside"]


def test_there_is_one_trainer_at_a_time_with_a_gpu(workloads: dict[str, Manifest], tmp_path: Path) -> None:
    """Two would mean one that stands by with a GPU; without the component there is none."""
    spec = workloads["trainer"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert containers(workloads["trainer"])[0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "nvidia.com" not in str(everything(tmp_path))


def test_the_sandbox_knows_nothing_and_is_confined_by_our_profiles(workloads: dict[str, Manifest]) -> None:
    """It shares a socket with the trainer, in memory, and has neither its volumes nor its secrets."""
    trainer, sandbox = containers(workloads["trainer"])
    assert {each["name"] for each in sandbox["env"]} == {"LOG_FORMAT", "LOG_LEVEL"}
    assert {each["name"] for each in sandbox["volumeMounts"]} == {"sandbox-socket", "sandbox-tmp"}
    assert {"name": "sandbox-socket", "mountPath": "/run/sandbox", "readOnly": True} in trainer[
        "volumeMounts"
    ]
    assert _environment(trainer)["SANDBOX_SOCKET"] in sandbox["command"]
    seccomp = Path(sandbox["securityContext"]["seccompProfile"]["localhostProfile"])
    assert (PROJECT / "deploy" / seccomp.name).is_file()
    assert str(seccomp) in GUIDE
    profile = sandbox["securityContext"]["appArmorProfile"]["localhostProfile"]
    assert f"profile {profile} " in (PROJECT / "deploy/sandbox-apparmor").read_text(encoding="utf-8")
