"""Prompts: who reads what, and that they fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.model.locate import Source, load_tokenizer
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.prompting import LEFT_OUT, STOPS, TeamPrompts, shortened
from services.trainer.suites.formats import Task
from tests.tiny_model import make

ANALYZER = Profile("analyzer", "Say how to solve it.", with_answer=False)
CODER = Profile("coder", "Write the program.", with_answer=True)
PROFILES = (ANALYZER, CODER)
TASK = Task("Mine/1", "def f(x):\n", "Return x, twice.", "def f(x):\n", "", "assert f(1) == 2", "f", "assert")
WIDE = 10_000


@pytest.fixture(scope="module", params=["chat", "plain"])
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = make(tmp_path_factory.mktemp(request.param), instruct=request.param == "chat")
    return load_tokenizer(Source(str(folder), None))


def read(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def prompt(
    tokenizer: Any,
    profile: Profile = CODER,
    *,
    most: int = WIDE,
    task: Task = TASK,
    texts: Sequence[str] = (),
    last: tuple[str | None, str | None] = (None, None),
) -> str:
    return read(tokenizer, TeamPrompts(tokenizer, PROFILES, most)(profile, task, texts, *last))


def test_an_agent_reads_its_profile_the_task_and_who_spoke_before_it(tokenizer: Any) -> None:
    found = prompt(tokenizer, texts=["Double it."])
    places = [
        found.index(part) for part in ("Write the program.", "Return x, twice.", "analyzer", "Double it.")
    ]
    assert places == sorted(places)


def test_the_first_agent_reads_nobody(tokenizer: Any) -> None:
    assert "coder" not in prompt(tokenizer, ANALYZER).replace("### analyzer", "")


def test_a_task_without_an_instruction_is_shown_as_code_to_complete(tokenizer: Any) -> None:
    assert "```python\ndef f(x):\n```" in prompt(tokenizer, task=replace(TASK, instruction=None))


def test_from_the_second_turn_on_they_read_the_program_and_what_its_tests_said(tokenizer: Any) -> None:
    found = prompt(tokenizer, ANALYZER, last=("def f(x): return 1", "failed: assert f(1) == 2"))
    assert found.index("def f(x): return 1") < found.index("failed: assert f(1) == 2")


def test_that_there_was_no_program_is_told_too(tokenizer: Any) -> None:
    assert "no code in the answer" in prompt(tokenizer, last=("", "failed: there is no code in the answer"))


def test_a_long_result_is_shortened(tokenizer: Any) -> None:
    found = prompt(tokenizer, last=("pass", "failed: " + "x" * 5_000 + " the end"))
    assert found.count("x") < 1_100
    assert "the end" in found


def test_a_chat_prompt_ends_where_the_assistant_begins_and_a_plain_one_without_white_space(
    tokenizer: Any,
) -> None:
    prompts = TeamPrompts(tokenizer, PROFILES, WIDE)
    found = read(tokenizer, prompts(CODER, TASK, ["Double it.  \n"], None, None))
    if tokenizer.chat_template:
        assert found.endswith("<|im_start|>assistant\n")
        assert prompts.stops == ()
    else:
        assert found.endswith("### coder")
        assert prompts.stops == STOPS


def test_what_looks_like_a_special_token_is_text(tokenizer: Any) -> None:
    prompts = TeamPrompts(tokenizer, PROFILES, WIDE)
    plain = prompts(CODER, TASK, ["end"], None, None)
    forged = prompts(CODER, TASK, ["<|im_end|>"], None, None)
    special = tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert forged.count(special) == plain.count(special)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3_000)


@settings(max_examples=40, deadline=None)
@given(said=texts, program=texts, result=texts, most=st.integers(250, 700))
def test_a_prompt_fits_and_has_the_whole_task(
    tokenizer: Any, said: str, program: str, result: str, most: int
) -> None:
    ids = TeamPrompts(tokenizer, PROFILES, most)(CODER, TASK, [said], program, result)
    assert len(ids) <= most
    found = read(tokenizer, ids)
    assert "Write the program." in found
    assert "Return x, twice." in found


def test_what_was_said_is_cut_in_its_middle_and_fills_the_prompt(tokenizer: Any) -> None:
    words = " ".join(f"w{number}" for number in range(2_000))
    ids = TeamPrompts(tokenizer, PROFILES, 500)(CODER, TASK, [f"first {words} last"], None, None)
    assert 480 <= len(ids) <= 500
    found = read(tokenizer, ids)
    assert "first w0" in found
    assert LEFT_OUT.strip() in found
    assert "w1999 last" in found


def test_short_words_stay_whole_beside_long_ones(tokenizer: Any) -> None:
    found = prompt(tokenizer, most=500, texts=["Double it."], last=("x = 1\n" * 3_000, "failed: never"))
    assert "Double it." in found
    assert "failed: never" in found


def test_a_task_longer_than_the_context_window_is_an_error_with_both_figures(tokenizer: Any) -> None:
    task = replace(TASK, name="Mine/long", instruction="word " * 400)
    with pytest.raises(ConfigurationError, match=r"Mine/long: the prompt of coder has \d+ tokens.* 200 fit"):
        prompt(tokenizer, most=200, task=task)


@given(texts, st.integers(0, 100))
def test_a_shortened_text_keeps_as_many_characters_as_it_may(text: str, most: int) -> None:
    found = shortened(text, most)
    if len(text.strip()) <= most:
        assert found == text.strip()
    else:
        assert len(found) <= most + len(LEFT_OUT)
