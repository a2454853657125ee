"""A team that answers: named like any adapter, asked as a whole, or one role alone."""

from pathlib import Path
from typing import Any

import pytest
import torch

from services.core.errors import ConfigurationError
from services.trainer import subjects
from services.trainer.answering import loading, question
from services.trainer.comparing import __main__ as child
from services.trainer.generation import Request
from services.trainer.merging import __main__ as merging
from services.trainer.reinforcement import asking
from tests import published_team
from tests import tiny_model as tiny
from tests.published_team import PublishedTeam


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> PublishedTeam:
    home = tmp_path_factory.mktemp("home")
    return published_team.published(home, tiny.make(home / "model"))


def asked(subject: str = "champion", **fields: Any) -> dict[str, Any]:
    request = {"max_new_tokens": 8, "temperature": 1.0, "seed": 3, "stop": [], **fields.pop("request", {})}
    return {"subject": subject, "request": request, "prompt": "Add two numbers.", "chat": None, **fields}


# names


@pytest.mark.parametrize("name", ["champion", "pair", "pair/round-0001", "round-0001"])
def test_a_team_has_the_names_of_any_release(made: PublishedTeam, name: str) -> None:
    found = subjects.resolve(name, made.settings)
    assert (found.kind, found.folder, found.profiles) == ("team", made.folder, published_team.PROFILES)


@pytest.mark.parametrize("name", ["champion", "pair", "pair/round-0001", "round-0001", "{folder}"])
def test_a_role_stands_behind_them(made: PublishedTeam, name: str) -> None:
    found = subjects.resolve(f"{name.format(folder=made.folder)}/coder", made.settings)
    assert (found.kind, found.folder, found.release) == ("adapter", made.folder / "coder", made.folder)
    assert found.released_as == "round-0001/coder"
    assert found.manifest is not None


def test_a_role_it_has_not_is_said_with_those_it_has(made: PublishedTeam) -> None:
    with pytest.raises(
        ConfigurationError, match=r"champion has no role 'tester': expected one of analyzer, coder"
    ):
        subjects.resolve("champion/tester", made.settings)


def test_merging_a_team_says_which_roles_can_be(made: PublishedTeam, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"takes one adapter: name champion/analyzer or champion/coder"
    ):
        merging.merged(
            {"subject": "champion", "output": str(tmp_path / "merged"), "check": False}, made.settings
        )


def test_one_role_can_be_merged(made: PublishedTeam, tmp_path: Path) -> None:
    """Into a model that writes what the base with that adapter does."""
    output = tmp_path / "merged"
    sent = {"subject": "champion/coder", "output": str(output), "check": False, "contents": []}
    merging.merged(sent, made.settings)
    merged, tokenizer = loading.load(str(output), made.settings)
    role, _ = loading.load("champion/coder", made.settings)
    ids = torch.tensor([tokenizer.encode("def add(a, b):\n")])
    with torch.no_grad():
        torch.testing.assert_close(merged(ids).logits, role(ids).logits, atol=2e-4, rtol=1e-3)


# answers


def test_every_agent_speaks_and_the_last_one_answers(made: PublishedTeam) -> None:
    found = question.answered(asked(), made.settings)
    (completion,) = found["completions"]
    assert [said["role"] for said in completion["said"]] == ["analyzer", "coder"]
    assert completion["text"] == completion["said"][-1]["text"]
    assert completion["tokens"] == sum(said["tokens"] for said in completion["said"])


def test_what_is_asked_for_several_times_is_drawn_anew(made: PublishedTeam) -> None:
    found = question.answered(asked(request={"n": 3}), made.settings)
    assert len({completion["said"][0]["text"] for completion in found["completions"]}) == 3


def test_agents_are_heard_one_after_another(made: PublishedTeam) -> None:
    heard: list[str] = []
    found = question.answered(asked(), made.settings, heard.append)
    assert [text.splitlines()[0] for text in heard] == ["── analyzer ──", "── coder ──"]
    assert found["completions"][0]["text"].strip() in heard[1]


def test_the_coder_reads_what_the_analyzer_said(made: PublishedTeam) -> None:
    """With another analysis it answers otherwise."""
    subject = subjects.resolve("champion", made.settings)
    base, tokenizer = loading.load_base(subject, made.settings)
    team = asking.load(base, tokenizer, subject)
    tasks = [asking.as_task("Add two numbers.")]
    plain = asking.ask(team, subject, tasks, Request(8))
    with torch.no_grad():
        for name, weight in team.parameters_of("analyzer").items():
            if "lora_B" in name:
                weight.mul_(-20)
    other = asking.ask(team, subject, tasks, Request(8))
    assert plain[0][0][0].text != other[0][0][0].text
    assert plain[0][0][1].text != other[0][0][1].text


@pytest.mark.parametrize("fields", [{"chat": True}, {"chat": False}, {"prefix": "a", "suffix": "b"}])
def test_a_team_is_asked_as_it_was_trained(made: PublishedTeam, fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"is a team, .* or name one role, champion/coder"):
        question.answered(asked(**fields), made.settings)


def test_one_role_answers_alone(made: PublishedTeam) -> None:
    found = question.answered(asked("champion/analyzer", chat=True), made.settings)
    assert "said" not in found["completions"][0]


# beside other models


def compared(made: PublishedTeam, **fields: Any) -> dict[str, Any]:
    sent = {
        "subjects": ["base", "champion", "champion/coder"], "suites": [], "prompts": [], "contents": [],
        "tasks": [], "items": 5, "seed": 1, "request": {"max_new_tokens": 8, "stop": []}, "chat": None,
        **fields,
    }  # fmt: skip
    return child.compared(sent, made.settings)


def test_beside_the_base_both_texts_of_a_team_are_shown(made: PublishedTeam) -> None:
    prompts = [{"name": "one", "prompt": "Add two numbers.", "answer": None}]
    found = compared(made, prompts=prompts)["found"]
    written = [each["scores"][0]["detail"]["written"] for each in found]
    assert ["── analyzer ──" in text and "── coder ──" in text for text in written] == [False, True, False]
