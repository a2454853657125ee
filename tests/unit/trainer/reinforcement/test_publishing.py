"""A team's release: its files, its receipt, and what no one should load."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from services.core.errors import ConfigurationError, PublishError, ReceiptError, UnsafeAdapterError
from services.core.models import ContentRole
from services.trainer import canary_suite, model, publish, vetting
from services.trainer.receipts import practice, verifying
from services.trainer.reinforcement.team import Team
from services.trainer.vetting import teams
from tests import published_team, tiny_adapter
from tests import tiny_model as tiny
from tests.published_team import PROFILES, PublishedTeam


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> PublishedTeam:
    home = tmp_path_factory.mktemp("home")
    return published_team.published(home, tiny.make(home / "model"))


@pytest.fixture
def copy(made: PublishedTeam, tmp_path: Path) -> Path:
    """Of the release, to be spoilt."""
    return shutil.copytree(made.folder, tmp_path / "pair" / made.folder.name)


def test_a_release_has_a_folder_for_each_role_and_one_manifest(made: PublishedTeam) -> None:
    files = set(made.manifest["files"])
    expected = {f"{role}/{name}" for role in ("analyzer", "coder")
                for name in ("adapter_config.json", "adapter_model.safetensors")}  # fmt: skip
    expected |= {
        "critic/value_head.safetensors",
        "profiles.json",
        "summary.json",
        "receipt.jsonl",
        "tokenizer.json",
    }
    assert expected <= files
    assert (made.manifest["kind"], made.manifest["roles"]) == ("team", ["analyzer", "coder"])
    assert publish.verify(made.folder) == json.loads(json.dumps(made.manifest))


def test_the_profiles_are_those_that_acted(made: PublishedTeam) -> None:
    assert teams.profiles(made.folder) == PROFILES


def test_a_published_team_can_be_gone_on_from(made: PublishedTeam) -> None:
    source = model.locate(made.recipe.base_model, None, made.settings.cache_dir)
    team = Team.load(
        model.load_base(made.recipe, source), model.load_tokenizer(source), made.recipe, PROFILES, made.folder
    )
    weights = load_file(made.folder / "coder" / "adapter_model.safetensors")
    name = next(name for name in weights if "lora_B" in name)
    own = team.parameters_of("coder")[name.replace(".weight", ".coder.weight")]
    torch.testing.assert_close(own.detach(), weights[name])


def test_the_canary_finds_what_was_published(made: PublishedTeam) -> None:
    found = canary_suite.run(made.folder, made.manifest, made.settings)
    assert found == pytest.approx(made.manifest["canary"], rel=1e-4)


@pytest.mark.parametrize(
    "file", ["coder/adapter_model.safetensors", "critic/value_head.safetensors", "profiles.json"]
)
def test_a_changed_file_of_any_folder_is_noticed(copy: Path, file: str) -> None:
    with (copy / file).open("ab") as opened:
        opened.write(b" ")
    with pytest.raises(PublishError, match="is changed"):
        publish.verify(copy)


@pytest.mark.parametrize("part", ["coder", "critic/value_head.safetensors"])
def test_a_missing_part_is_noticed(copy: Path, part: str) -> None:
    shutil.rmtree(copy / part) if (copy / part).is_dir() else (copy / part).unlink()
    with pytest.raises(PublishError, match="is missing"):
        publish.verify(copy)


# what no one should load


def rewritten(file: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(change(content)))

    return spoil


def changed(**fields: Any) -> Callable[[Any], Any]:
    """Of the first agent."""
    return lambda profiles: [{**profiles[0], **fields}, profiles[1]]


def written(file: str, data: bytes = b"{}") -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)

    return spoil


def linked(folder: Path) -> None:
    (folder / "coder" / "adapter_model.safetensors").unlink()
    (folder / "coder" / "adapter_model.safetensors").symlink_to("/etc/passwd")


def third_role(folder: Path) -> None:
    shutil.copytree(folder / "coder", folder / "stranger")


def adapter_on_top(folder: Path) -> None:
    tiny_adapter.make(folder)


def whole_critic(folder: Path) -> None:
    save_file({"weight": torch.zeros(2, 2, 2)}, folder / "critic" / "value_head.safetensors")


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "pickle in a role": (written("coder/adapter_model.bin", b"\x80\x04."), "may hold a pickle"),
    "pickle as value head": (written("critic/value_head.pth"), "may hold a pickle"),
    "code beside a role": (written("analyzer/modeling.py", b"import os"), "is code"),
    "link out of a role": (linked, "symbolic link"),
    "role out of the folder": (rewritten("profiles.json", changed(role="../../x")), "expected small letters"),
    "role twice": (rewritten("profiles.json", changed(role="coder")), "is there twice"),
    "critic as a role": (rewritten("profiles.json", changed(role="critic")), "expected small letters"),
    "role that is not there": (rewritten("profiles.json", changed(role="tester")), "belongs to no role"),
    "role without a profile": (third_role, "belongs to no role"),
    "no agent": (rewritten("profiles.json", lambda _: []), "no list of 1 to 16"),
    "profiles that are none": (rewritten("profiles.json", lambda _: {"a": 1}), "no list of 1 to 16"),
    "more than a profile": (rewritten("profiles.json", changed(tool="sh")), "expected an agent's"),
    "a prompt that is none": (rewritten("profiles.json", changed(prompt=1)), "expected a str"),
    "nobody answers": (rewritten("profiles.json", lambda p: p[:1]), "belongs to no role|with_answer"),
    "an adapter on top": (adapter_on_top, "lies beside profiles.json"),
    "a model in a role": (written("coder/config.json"), "is a model's"),
    "a value head of other shapes": (whole_critic, "no weight of a value head"),
    "something beside the value head": (written("critic/adapter_config.json"), "is no value head"),
    "code in a role's config": (
        rewritten("coder/adapter_config.json", lambda c: {**c, "auto_mapping": {"parent_library": "x"}}),
        "names code to import",
    ),
    "another kind of adapter": (
        rewritten("analyzer/adapter_config.json", lambda c: {**c, "peft_type": "LOHA"}), "peft_type",
    ),
    "another base": (
        rewritten("coder/adapter_config.json", lambda c: {**c, "base_model_name_or_path": "evil/other"}),
        "expected .*model, which it is to go onto",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_team_that_could_do_harm_is_refused(
    made: PublishedTeam, copy: Path, spoil: Callable[[Path], None], why: str
) -> None:
    spoil(copy)
    with pytest.raises(UnsafeAdapterError, match=why):
        vetting.vet(copy, made.recipe.base_model)


@pytest.mark.parametrize("kind", ["adapter", "model"])
def test_a_team_under_another_kind_is_refused(copy: Path, kind: str) -> None:
    """A loader that goes by the manifest would look for other files than were vetted."""
    rewritten("manifest.json", lambda manifest: {**manifest, "kind": kind})(copy)
    with pytest.raises(UnsafeAdapterError, match="says kind"):
        publish.verify(copy)


def test_what_is_no_team_is_none_by_its_manifest(copy: Path) -> None:
    (copy / "profiles.json").unlink()
    with pytest.raises(UnsafeAdapterError, match=r"there is no profiles\.json"):
        publish.verify(copy)


def test_a_team_that_no_one_should_load_is_not_published(made: PublishedTeam, tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        shutil.copytree(made.folder, folder, dirs_exist_ok=True)
        (folder / "coder" / "adapter_model.bin").write_bytes(b"\x80\x04.")

    with pytest.raises(UnsafeAdapterError):
        publish.publish(tmp_path / "pair", "round-0001", write, {"kind": "team"})
    assert not list((tmp_path / "pair").glob("*"))


def test_a_crash_leaves_no_half_a_team(made: PublishedTeam, tmp_path: Path) -> None:
    """What was renamed and never committed goes with all its folders."""
    track = tmp_path / "pair"
    shutil.copytree(made.folder, track / "round-0001")
    shutil.copytree(made.folder, track / "round-0002")
    shutil.copytree(made.folder, track / f"{publish.TEMPORARY}round-0003-1")
    publish.settle(track, "round-0001", {"round-0001"})
    assert {path.name for path in track.iterdir()} == {"round-0001", publish.CURRENT}
    publish.verify(track / publish.CURRENT)


# receipts


def test_a_receipt_says_what_was_practised_and_judged_by(made: PublishedTeam) -> None:
    receipt, chain = verifying.verify(made.folder)
    assert {role: receipt.tasks[role] for role in ContentRole} == {
        "train": 3,
        "validation": 1,
        "held_out": 6,
        "replay": 0,
    }
    assert (receipt.episodes, receipt.solved, receipt.tokens, receipt.not_seen) == (16, 8, 780, 1)
    assert receipt.practised_of == {"easy": 3}
    assert [link.adapter for link in chain.links] == ["round-0001", "base"]


def test_receipts_of_two_rounds_are_chained(made: PublishedTeam, tmp_path: Path) -> None:
    settings = made.settings.model_copy(update={"adapters_dir": tmp_path})
    shutil.copytree(made.folder, tmp_path / made.recipe.name / "round-0001")
    published_team.release(settings, made.recipe, "round-0002", parent="round-0001")
    _, chain = verifying.verify(tmp_path / made.recipe.name / "round-0002")
    assert [link.adapter for link in chain.links] == ["round-0002", "round-0001", "base"]


def test_a_changed_task_line_is_noticed(copy: Path) -> None:
    path = copy / "receipt.jsonl"
    path.write_text(path.read_text().replace('"solved":5', '"solved":6'))
    with pytest.raises(ReceiptError, match="lines were changed"):
        verifying.read(copy)


def test_a_task_that_was_not_to_be_practised_is_an_error(made: PublishedTeam, tmp_path: Path) -> None:
    """A receipt could not say what it was."""
    held_out = made.tasks[ContentRole.HELD_OUT][0].task
    stray = practice.Practice(1, {held_out.key: published_team.Exposure(1, 1, 1)})
    with pytest.raises(ValueError, match="was practised"):
        practice.write(tmp_path, "round-0001", made.manifest, None, made.tasks, stray)


def test_another_role_is_refused_by_who_goes_on(made: PublishedTeam) -> None:
    source = model.locate(made.recipe.base_model, None, made.settings.cache_dir)
    with pytest.raises(ConfigurationError, match="analyzer, coder"):
        Team.load(model.load_base(made.recipe, source), None, made.recipe, PROFILES[1:], made.folder)
