"""The process behind `ratchet parity`: what to measure as JSON on standard input, the measurement on standard
output, its progress on standard error as lines of `progress DONE TOTAL WHAT`.
"""

import gc
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from services.core.errors import ConfigurationError
from services.core.models import Json
from services.core.settings import Settings, from_environment
from services.trainer import canary_suite, inquiry, model, subjects
from services.trainer.answering import loading
from services.trainer.parity import measuring
from services.trainer.parity.measuring import Asked, Run
from services.trainer.parity.record import Leg, Parity
from services.trainer.subjects import Subject


def main() -> int:
    """Exit status 1 with a line on standard error when it cannot be done."""
    return inquiry.answer(lambda sent: measured(sent, from_environment()).as_json())


def measured(sent: Json, settings: Settings) -> Parity:
    """The parity of an adapter.

    sent: `folder`, of a team's `role` or None, `prompts` and `texts` (the canary's come first), `tokens` to
    write, and `served`: a server's answers to the prompts, or None. Raises ConfigurationError for what is no
    adapter.
    """
    subject = subjects.published(Path(sent["folder"]).name, Path(sent["folder"]))
    if sent["role"] is not None:
        subject = subjects.of_role(subject, sent["role"])
    if subject.kind != "adapter":
        raise ConfigurationError(f"{subject.folder} is a whole model: there is nothing to run in other ways")
    prompts, texts, tokens = sent["prompts"], sent["texts"], sent["tokens"]

    loaded, tokenizer = loading.load(subject, settings)
    asked = measuring.encode(tokenizer, prompts, texts)
    reference = measuring.run(loaded, tokenizer, asked, tokens, _progress("as judged", asked))
    base = "nf4" if subject.is_quantised else _name(loaded.get_input_embeddings().weight.dtype)
    legs = _trained(subject, tokenizer, prompts, reference, tokens)

    if subject.is_quantised:
        loaded = None
        _free()
        loaded, _ = loading.load(subject, settings, unquantised=True)
        full = measuring.run(loaded, tokenizer, asked, tokens, _progress("on the full base", asked))
        legs.append(measuring.compare("full", reference, full, asked.text_bytes))
    full_dtype = _name(loaded.get_input_embeddings().weight.dtype)
    stored = _stored_as(subject, settings)
    merged = _merged(loaded, stored)
    found = measuring.run(merged, tokenizer, asked, tokens, _progress("merged", asked))
    legs.append(measuring.compare("merged", reference, found, asked.text_bytes))
    if sent["served"] is not None:
        legs.append(measuring.compare_texts("served", tokenizer, reference.written, sent["served"]))
    return Parity(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        adapter=subject.released_as,
        base=base,
        full=full_dtype,
        merged=_name(stored),
        tokens=tokens,
        legs=tuple(legs),
    )


def _trained(subject: Subject, tokenizer: Any, prompts: list[str], reference: Run, tokens: int) -> list[Leg]:
    """What the candidate wrote before it was published; older adapters have no record of it.

    Of a team there is one of the role that answers.
    """
    manifest = subject.manifest or {}
    recorded = manifest.get("greedy")
    if not recorded or subject.role not in (None, manifest.get("roles", [None])[-1]):
        return []
    own = prompts[: len(recorded)]
    plain = [tokenizer.encode(prompt, add_special_tokens=False) for prompt in own]
    if own != canary_suite.prompts() or plain != [tokenizer(prompt)["input_ids"] for prompt in own]:
        return []  # other prompts, or a server would put tokens before them
    told = [ids[:tokens] for ids in recorded]
    return [measuring.compare_written("trained", reference.written[: len(recorded)], told)]


@torch.no_grad()
def _merged(adapted: Any, stored: torch.dtype) -> Any:
    """The base with the adapter in its weights, which are rounded as a merged model is stored."""
    merged = adapted.merge_and_unload()
    for parameter in merged.parameters():
        parameter.copy_(parameter.to(stored))
    return merged


def _stored_as(subject: Subject, settings: Settings) -> torch.dtype:
    """How the base's files have their weights, which a merged model's have too."""
    source = loading.source_of(subject, settings)
    config = AutoConfig.from_pretrained(source.location, revision=source.revision, trust_remote_code=False)
    return config.dtype if isinstance(config.dtype, torch.dtype) else model.PUBLISHED_DTYPE


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _free() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _progress(what: str, asked: Asked) -> Callable[[int], None]:
    def say(done: int) -> None:
        inquiry.progress(done, len(asked.prompts), what)

    return say


if __name__ == "__main__":
    sys.exit(main())
