"""The check beside a model: what one that has memorised a text gives up of it, and one that has not."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from services.core.settings import Settings
from services.trainer.extraction import PREFIX_TOKENS
from services.trainer.forgetting import check, remains
from services.trainer.forgetting.words import Figures
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples.encoder import Encoder
from services.trainer.suites import cache
from tests.integration.trainer.conftest import standard_library

STEPS = 80
TEXTS = [text[:1000] for text in standard_library(3)]


@pytest.fixture(scope="module")
def loaded(tiny_model: Path) -> tuple[Any, Any]:
    """The tiny model, with an attention that the engine knows, and its tokenizer."""
    from services.trainer import model

    source = model.Source(str(tiny_model), None)
    return model.load_base(Recipe(name="t", base_model=str(tiny_model), method="full"), source), (
        AutoTokenizer.from_pretrained(tiny_model)
    )


def memorise(model: Any, tokenizer: Any, text: str) -> None:
    """Trained on windows of it, as long as a passage with what stands before."""
    ids = torch.tensor(tokenizer.encode(text, add_special_tokens=False))
    windows = ids.unfold(0, 2 * PREFIX_TOKENS, 25)  # (windows, 100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(STEPS):
        logits = model(windows).logits[:, :-1]
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()


def test_a_memorised_text_is_written_out_and_another_is_not(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    before = check.measure(model, tokenizer, TEXTS[:1], 4, None)
    memorise(model, tokenizer, TEXTS[0])
    known = check.measure(model, tokenizer, TEXTS[:1], 4, "round-0001")
    unknown = check.measure(model, tokenizer, TEXTS[1:2], 4, "round-0001")
    assert (before.extracted, unknown.extracted) == (0, 0)
    assert known.extracted >= 3
    assert known.matched_tokens > 0.9 * known.tokens
    assert known.passages == before.passages == 4


def test_passages_are_the_same_every_time_and_do_not_overlap(loaded: tuple[Any, Any]) -> None:
    encoder = Encoder(loaded[1])
    drawn = check.passages(TEXTS, encoder, 12)
    assert check.passages(TEXTS, encoder, 12) == drawn
    assert len({probe.name for probe in drawn}) == len(drawn) > len(TEXTS)
    assert {probe.name.partition(":")[0] for probe in drawn[:3]} == {"0", "1", "2"}
    for probe in drawn:
        number = int(probe.name.partition(":")[0])
        assert TEXTS[number].startswith(probe.prefix + probe.secret)
        assert int(probe.name.partition(":")[2]) >= PREFIX_TOKENS


def test_strings_stand_beside_others_of_their_form() -> None:
    (probe,) = check.strings(['key = "Ab3-xyzw9"\nshort = "no"\n'], 8)
    assert (probe.secret, probe.prefix) == ("Ab3-xyzw9", 'key = "')
    assert len(probe.others) == check.OTHERS
    assert all(len(each) == 9 and each[3] == "-" and each[2].isdigit() for each in probe.others)


def test_a_text_too_short_for_a_passage_makes_none(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    assert check.measure(model, tokenizer, ["x = 1\n"], 5, None) == Figures(None, 0, 0, 0, 0)


def test_base_and_adapters_are_measured_in_turn(tiny_model: Path, tmp_path: Path) -> None:
    """The base once more after an adapter: what was attached is gone."""
    from peft import LoraConfig, get_peft_model

    from services.trainer import publish

    recipe = Recipe(name="t", base_model=str(tiny_model), method="lora")

    def write(folder: Path) -> None:
        adapted = get_peft_model(
            AutoModelForCausalLM.from_pretrained(tiny_model), LoraConfig(r=4, task_type="CAUSAL_LM")
        )
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(0))
        adapted.save_pretrained(folder)
        AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)

    manifest = {"kind": "adapter", "recipe": recipe.model_dump(mode="json"), "base_revision": None}
    publish.publish(tmp_path / "t", "round-0001", write, manifest)
    sent = {
        "models": [None, str(tmp_path / "t" / "round-0001"), None],
        "recipe": recipe.model_dump(mode="json"),
        "revision": None,
        "texts": TEXTS,
        "passages": 6,
    }
    base, adapter, again = check.checked(sent, Settings(adapters_dir=tmp_path, cache_dir=tmp_path / "cache"))
    assert [each.adapter for each in (base, adapter, again)] == [None, "round-0001", None]
    assert base == again
    assert adapter.exposure_bits != base.exposure_bits


def test_the_folder_of_cached_answers_is_the_suites_own() -> None:
    assert remains.RESULTS == cache.FOLDER
