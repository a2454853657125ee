"""Fill in the middle."""

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ConfigurationError
from services.trainer.recipes.recipe import Recipe
from services.trainer.samples import fim
from services.trainer.samples.encoder import Encoder
from services.trainer.samples.make import make
from services.trainer.samples.sample import Sample
from services.trainer.samples.source import SampleSource, Unit
from tests.tiny_model import standard_library
from tests.unit.trainer.known_tokenizers import tokenizer

MODELS = ["qwen", "starcoder2", "codellama", "deepseek", "codestral"]
RECIPE = Recipe(name="fim", base_model="./some-model", objective="cpt", max_length=2048, fim_rate=1.0)
TEXT = "def outer():\n    one = 1\n    two = 2\n    return one + two\n\n\ndef other():\n    return 0\n"


def made(name: str, text: str = TEXT, number: int = 1, **fields: object) -> Sample:
    source = SampleSource(1, hashlib.sha256(text.encode()).digest(), "python", text)
    recipe = RECIPE.model_copy(update=fields)
    (sample,) = make([source], recipe, tokenizer(name), purpose="train", round_number=number)
    return sample


def parts(name: str, sample: Sample) -> tuple[list[str], list[str]]:
    """The special tokens in order, and the texts behind each of them."""
    its = tokenizer(name)
    special: list[str] = []
    texts: list[list[int]] = []
    for token in sample.ids:
        if token in its.added_tokens_decoder and its.convert_ids_to_tokens(token) != "<unk>":
            special.append(its.convert_ids_to_tokens(token))
            texts.append([])
        else:
            texts[-1].append(token)
    # A Llama 2 decodes without the space that its texts begin with: one before them keeps theirs.
    space = its.convert_tokens_to_ids("▁") if name == "codellama" else None
    return special, [its.decode([*([space] if space and ids else []), *ids]) for ids in texts]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("spm_rate", [0.0, 1.0])
@pytest.mark.parametrize("ast_rate", [0.0, 1.0])
def test_prefix_middle_and_suffix_are_the_text(name: str, spm_rate: float, ast_rate: float) -> None:
    """In both orders and with either kind of span, in the words of every family."""
    for number in range(20):
        sample = made(name, number=number, fim_spm_rate=spm_rate, fim_ast_rate=ast_rate)
        special, texts = parts(name, sample)
        if special[0] in ("<s>", "<｜begin▁of▁sentence｜>") and name != "codestral":
            special, texts = special[1:], texts[1:]
        assert sample.prompt_tokens == 0
        if name == "codestral":
            assert special == ["[SUFFIX]", "[PREFIX]", "</s>"]
            suffix, rest, _ = texts
            assert rest + suffix == TEXT
        elif spm_rate:
            pre, suf, mid, _ = special
            assert [pre, suf, mid] == list(next(f for f in fim.FAMILIES if f.prefix == pre)[:3])
            nothing, suffix, rest, _ = texts
            assert nothing == ""
            assert rest + suffix == TEXT
        else:
            pre, suf, mid, _ = special
            assert [pre, suf, mid] == list(next(f for f in fim.FAMILIES if f.prefix == pre)[:3])
            prefix, suffix, middle, _ = texts
            assert prefix + middle + suffix == TEXT


def test_code_llama_has_an_end_of_its_own() -> None:
    """Where a middle ends is where a document would not."""
    assert parts("codellama", made("codellama"))[0][-1] == "▁<EOT>"
    assert parts("qwen", made("qwen"))[0][-1] == "<|endoftext|>"


@given(st.text(min_size=1, max_size=300), st.randoms(), st.floats(0, 1))
def test_a_split_joined_is_the_text(text: str, random_: random.Random, ast_rate: float) -> None:
    """Character by character."""
    split = fim.split(text, (), random_, ast_rate)
    assert split.prefix + split.middle + split.suffix == text


def test_an_ast_span_is_a_whole_unit() -> None:
    """By its bytes, also behind characters of several."""
    text = "# ééé\n" + TEXT
    start, end = (len(text[: text.index(word)].encode()) for word in ("def outer", "\n\n\ndef other"))
    units = [Unit("function", "outer", start, end, 2, 5, start)]
    split = fim.split(text, units, random.Random(1), 1.0)
    assert split.middle == "def outer():\n    one = 1\n    two = 2\n    return one + two"


def test_without_units_it_is_a_block() -> None:
    """Lines that are indented together."""
    middles = {fim.split(TEXT, (), random.Random(seed), 1.0).middle for seed in range(20)}
    assert middles == {"    one = 1\n    two = 2\n    return one + two\n", "    return 0\n"}


@pytest.mark.parametrize("name", ["smollm2", "chatml", "llama3"])
def test_a_tokenizer_without_the_tokens_is_refused_by_name(name: str) -> None:
    """Before anything is trained."""
    with pytest.raises(ConfigurationError, match=r"base_model \./some-model has none"):
        made(name)


def test_rates_are_kept() -> None:
    """Of 200 documents half are turned, of those a quarter suffix first."""
    sources = [
        SampleSource(n, hashlib.sha256(bytes([n])).digest(), "python", f"{TEXT}# {n}\n") for n in range(200)
    ]
    recipe = RECIPE.model_copy(update={"fim_rate": 0.5, "fim_spm_rate": 0.25})
    kinds = [s.kind for s in make(sources, recipe, tokenizer("qwen"), purpose="train", round_number=1)]
    turned = len(kinds) - kinds.count("file")
    assert 80 <= turned <= 120
    assert 0.15 <= kinds.count("file, fim-spm") / turned <= 0.35


def test_what_is_judged_is_never_turned() -> None:
    """The same in every round, whatever the rates."""
    source = SampleSource(1, b"sha", "python", TEXT)
    (sample,) = make([source], RECIPE, tokenizer("qwen"), purpose="judge", round_number=1)
    assert sample.kind == "file"


def test_a_long_document_is_turned_piece_by_piece() -> None:
    """No piece is longer than a row, and all of the text is in them."""
    text = "".join(path.read_text() for path in standard_library(6))
    source = SampleSource(1, b"sha", "python", text)
    recipe = RECIPE.model_copy(update={"max_length": 256})
    samples = make([source], recipe, tokenizer("qwen"), purpose="train", round_number=1)
    assert all(len(sample.ids) <= 256 for sample in samples)
    assert sum(sample.code_bytes for sample in samples) >= 0.99 * len(text.encode())
    assert sum("fim" in sample.kind for sample in samples) > 0.8 * len(samples)
    encoder = Encoder(tokenizer("qwen"))
    assert all(encoder.end == sample.ids[-1] for sample in samples if "fim" in sample.kind)
