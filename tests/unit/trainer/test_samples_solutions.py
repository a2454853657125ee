"""Solutions as samples: what is asked is given, what was written is learned."""

import pytest

from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import solutions
from services.trainer.samples.sample import IGNORED, Sample
from services.trainer.samples.solutions import Solution
from tests.unit.trainer.known_tokenizers import tokenizer
from tests.unit.trainer.test_samples import CODE, content, pairs_of

CODE_OF_IT = "def f(n):\n    return sum(range(n))\n"


def solution(code: str = CODE_OF_IT, number: int = 1, prompt: str = "Sum all numbers below n.") -> Solution:
    return Solution(number, "a" * 64, "b" * 64, "easy", f"easy/{number}", prompt, code)


def recipe(**fields: object) -> Recipe:
    return Recipe.model_validate({"name": "r", "base_model": "b", "max_length": 256, **fields})


def made(
    *found: Solution, name: str = "chatml", others: tuple[Sample, ...] = (), **fields: object
) -> list[Sample]:
    return solutions.samples(found, recipe(**fields), tokenizer(name), others, "42 1")


def decoded(ids: object, name: str = "chatml") -> str:
    return str(tokenizer(name).decode(ids, skip_special_tokens=False))


@pytest.mark.parametrize("name", ["chatml", "qwen", "llama3", "smollm2"])
def test_the_task_is_the_prompt_of_the_chat_template(name: str) -> None:
    """As generation begins: a model that is asked the same task is asked in the same tokens."""
    (sample,) = made(solution(), name=name)
    question = [{"role": "user", "content": "Sum all numbers below n."}]
    prompt = tokenizer(name).apply_chat_template(question, tokenize=True, add_generation_prompt=True,
                                                 return_dict=False)  # fmt: skip
    assert list(sample.ids[: sample.prompt_tokens]) == list(prompt)


def test_the_loss_is_on_the_program_in_its_fence_and_the_end_of_the_turn() -> None:
    (sample,) = made(solution())
    learned = [label for label in sample.labels if label != IGNORED]
    assert decoded(learned).startswith(f"```python\n{CODE_OF_IT}```")
    assert decoded(sample.ids[sample.code_start : sample.code_end]) == CODE_OF_IT.removesuffix("\n")


def test_a_program_with_backticks_has_a_longer_fence() -> None:
    (sample,) = made(solution('QUOTE = "````"\n'))
    assert decoded(sample.ids).count("`````") == 2


def test_names_of_special_tokens_in_a_program_stay_text() -> None:
    (sample,) = made(solution('END = "<|im_end|>"\n'))
    end = tokenizer("chatml").convert_tokens_to_ids("<|im_end|>")
    assert list(sample.ids[sample.code_start : sample.code_end]).count(end) == 0


def test_in_continued_pretraining_the_program_alone_is_a_document() -> None:
    (sample,) = made(solution(), objective="cpt")
    assert sample.prompt_tokens == 0
    assert decoded(sample.ids[sample.code_start : sample.code_end]) == CODE_OF_IT


def test_a_program_longer_than_a_row_is_left_out() -> None:
    assert made(solution("x = 1\n" * 300)) == []


def test_the_same_seed_mixes_them_into_the_same_order() -> None:
    others = tuple(pairs_of(content(CODE + f"\n# {number}"))[0] for number in range(8))
    found = [solution(number=number) for number in range(1, 5)]
    first, again = (made(*found, others=others) for _ in range(2))
    assert [sample.content_id for sample in first] == [sample.content_id for sample in again]
    kinds = [sample.kind for sample in first]
    assert sorted(kinds) == ["completion"] * 8 + ["solution"] * 4
    assert kinds != sorted(kinds)


def test_without_solutions_the_samples_are_what_they_were() -> None:
    others = tuple(pairs_of(content(CODE)))
    assert made(others=others) == list(others)


def test_with_a_curriculum_the_order_of_the_others_stays_and_short_ones_come_early() -> None:
    others = tuple(pairs_of(content("\n".join(CODE.splitlines()[:size])))[0] for size in (10, 20, 40))
    mixed = made(solution(), others=others, curriculum=True)
    assert [sample for sample in mixed if sample.kind != "solution"] == list(others)
    assert mixed[0].kind == "solution"


def test_all_tokens_of_a_sample_are_counted_to_its_solution() -> None:
    (sample,) = made(solution(number=7))
    (extract,) = sample.extracts
    assert solutions.id_of(extract.content_id) == 7
    assert (extract.first_line, extract.last_line, extract.tokens) == (1, 2, len(sample.ids))
    assert extract.content_id <= solutions.FIRST_ID
