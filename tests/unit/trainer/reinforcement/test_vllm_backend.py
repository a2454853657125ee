"""The vLLM writer with a stand-in for vLLM: what is asked of it, and what becomes of its answers."""

import sys
from array import array
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from services.core.errors import ConfigurationError
from services.trainer.generation import Completion, Request
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement.backend import OwnWriter, backend_of
from services.trainer.reinforcement.vllm_backend import VllmWriter
from services.trainer.samples.chance import draw

END = 2
ROLES = ("analyzer", "coder")
REQUEST = Request(8, temperature=0.7, stop=("###",), seed=5, logprobs=True)


class FakeEngine:
    """Ends one request a step, the last one first; of the prompt's tokens its answers count on."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[list[int], Any, Any]] = {}
        self.waiting: list[str] = []
        self.removed: list[int] = []

    def add_request(self, name: str, prompt: dict[str, list[int]], params: Any, *, lora_request: Any) -> None:
        self.asked[name] = (prompt["prompt_token_ids"], params, lora_request)
        self.waiting.append(name)

    def step(self) -> list[Any]:
        name = self.waiting.pop()
        ids = [self.asked[name][0][0] + 10, END]
        logprobs = [{token: SimpleNamespace(logprob=-float(token)), 99: None} for token in ids]
        output = SimpleNamespace(text="text", token_ids=ids, logprobs=logprobs, finish_reason="stop")
        going_on = [SimpleNamespace(request_id=each, finished=False) for each in self.waiting]
        return [*going_on, SimpleNamespace(request_id=name, finished=True, outputs=[output])]

    def abort_request(self, names: list[str]) -> None:
        self.waiting = [name for name in self.waiting if name not in names]

    def remove_lora(self, number: int) -> None:
        self.removed.append(number)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def vllm(engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made: Any = ModuleType("vllm")
    made.opened = []
    made.LLM = lambda **about: made.opened.append(about) or SimpleNamespace(llm_engine=engine)
    made.SamplingParams = SimpleNamespace
    made.lora = SimpleNamespace(request=SimpleNamespace(LoRARequest=SimpleNamespace))
    made.sampling_params = SimpleNamespace(RequestOutputKind=SimpleNamespace(FINAL_ONLY="final"))
    for name in ("vllm", "vllm.lora", "vllm.lora.request"):
        monkeypatch.setitem(sys.modules, name, made)
    return made


class FakeTeam:
    roles = ROLES
    model = SimpleNamespace(name_or_path="base", generation_config=SimpleNamespace(eos_token_id=END))
    tokenizer = SimpleNamespace(name_or_path="words", eos_token_id=END, added_tokens_decoder={})

    def save(self, folder: Path) -> None:
        for role in ROLES:
            (folder / role).mkdir(parents=True)


def settings(**asked: Any) -> Reinforcement:
    return Reinforcement(writer="vllm", context_window=64, max_new_tokens=8, **asked)


RECIPE = Recipe(name="r", base_model="base", lora_r=12)


@pytest.fixture
def writer(vllm: ModuleType) -> VllmWriter:
    made = backend_of(FakeTeam(), settings(), RECIPE)  # type: ignore[arg-type]
    assert isinstance(made, VllmWriter)
    made.begin()
    return made


def ignore(*_: Any) -> None: ...


def test_the_recipe_says_who_writes() -> None:
    assert isinstance(backend_of(FakeTeam(), Reinforcement(), RECIPE), OwnWriter)  # type: ignore[arg-type]


def test_without_vllm_it_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ConfigurationError, match=r"pip install vllm.*writer=own"):
        backend_of(FakeTeam(), settings(), RECIPE)  # type: ignore[arg-type]


@pytest.mark.usefixtures("writer")
def test_the_engine_has_room_for_the_adapters_and_for_prompt_and_answer(vllm: Any) -> None:
    (opened,) = vllm.opened
    assert (opened["max_loras"], opened["max_lora_rank"], opened["max_model_len"]) == (2, 16, 72)
    assert (opened["model"], opened["logprobs_mode"]) == ("base", "processed_logprobs")


@pytest.mark.usefixtures("writer")
def test_teams_of_one_base_share_an_engine(vllm: Any) -> None:
    backend_of(FakeTeam(), settings(), RECIPE)  # type: ignore[arg-type]
    assert len(vllm.opened) == 1


def test_a_role_writes_with_its_own_adapter_and_rows_with_their_own_seeds(
    writer: VllmWriter, engine: FakeEngine
) -> None:
    writer.write("coder", [[4, 5], [6]], [2, 1], REQUEST, on_row=ignore, on_done=ignore)
    asked = list(engine.asked.values())
    assert [prompt for prompt, *_ in asked] == [[4, 5], [4, 5], [6]]
    assert {lora.lora_name.split("-")[0] for *_, lora in asked} == {"coder"}
    assert all(Path(lora.lora_path).is_dir() for *_, lora in asked)
    assert [params.seed for _, params, _ in asked] == [
        draw(5, array("q", prompt).tobytes(), sample).getrandbits(31)
        for prompt, sample in (([4, 5], 0), ([4, 5], 1), ([6], 0))
    ]
    params = asked[0][1]
    assert (params.max_tokens, params.temperature, params.stop, params.stop_token_ids, params.logprobs) == (
        8, 0.7, ["###"], [END], 0,
    )  # fmt: skip


def test_completions_come_by_prompt_and_sample_with_end_token_and_log_probabilities(
    writer: VllmWriter,
) -> None:
    found = writer.write("coder", [[4, 5], [6]], [2, 1], REQUEST, on_row=ignore, on_done=ignore)
    first, second = (
        Completion("text", (ids,), finished=True, end=END, logprobs=(-float(ids), -2.0)) for ids in (14, 16)
    )
    assert found == [[first, first], [second]]


def test_rows_are_heard_of_as_they_finish(writer: VllmWriter) -> None:
    heard: list[tuple[int, int]] = []
    done: list[tuple[int, int]] = []
    writer.write(
        "coder", [[4], [6]], [1, 1], REQUEST,
        on_row=lambda place, _: heard.append(place), on_done=lambda *each: done.append(each),
    )  # fmt: skip
    assert heard == [(1, 0), (0, 0)]
    assert done[-1] == (2, 2)


def test_each_rollout_has_adapters_under_new_names_and_numbers(
    writer: VllmWriter, engine: FakeEngine
) -> None:
    """vLLM goes on from what it has read with an adapter of the same name."""
    writer.write("coder", [[4]], [1], REQUEST, on_row=ignore, on_done=ignore)
    writer.begin()
    writer.write("coder", [[4]], [1], REQUEST, on_row=ignore, on_done=ignore)
    before, after = (lora for *_, lora in engine.asked.values())
    assert before.lora_name != after.lora_name
    assert before.lora_int_id in engine.removed
    assert after.lora_int_id not in engine.removed
    assert not Path(before.lora_path).exists()


def test_what_is_not_finished_is_called_off_when_a_listener_raises(
    writer: VllmWriter, engine: FakeEngine
) -> None:
    def interrupt(*_: Any) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        writer.write("coder", [[4], [6]], [1, 1], REQUEST, on_row=interrupt, on_done=ignore)
    assert not engine.waiting
