"""A few samples of a round as the model saw them, for its page. Nothing here can fail a round.

Kept are eight samples of each 4 kB at most, as runs of tokens: given, learned, or the template's own. A long
run is cut in its middle. None with a planted secret is shown: somebody would take it for a true one.
Solutions of tasks are shown by themselves.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from services.core.models import Json
from services.trainer.context import Context
from services.trainer.ledger import Round
from services.trainer.rows import Rows
from services.trainer.samples.sample import Sample
from services.trainer.samples.solutions import KIND as SOLUTION

log = logging.getLogger(__name__)
SAMPLES = 8
SAMPLE_BYTES = 4096  # of a sample's runs as JSON
MOST_RUNS = 48  # of a sample made of many files; what follows is left out
FEWEST_CHARACTERS = 8  # of a run at either side of a cut
NUL, REPLACEMENT = "\0", "\N{REPLACEMENT CHARACTER}"  # PostgreSQL stores no NUL


@dataclass(frozen=True)
class Run:
    """Tokens that count alike, as text."""

    text: str
    learned: bool = False  # the loss is on them
    special: bool = False  # a token of the template or the tokenizer, not what the text says
    left_out: int = 0  # characters behind `text` that are not kept


@dataclass(frozen=True)
class ShownSample:
    contents: tuple[int, ...]  # ids of all that it quotes
    kind: str
    tokens: int
    learned: int  # of them
    runs: tuple[Run, ...]

    def runs_as_json(self) -> list[Json]:
        """Only what is not the default."""
        defaults = asdict(Run(""))
        return [
            {name: value for name, value in asdict(run).items() if value != defaults[name]}
            for run in self.runs
        ]


def keep(context: Context, round_: Round, rows: Rows, tokenizer: Any) -> None:
    """Store some of what is trained on. What goes wrong is said in the log, and the round goes on."""
    if not context.distribution.is_first:
        return
    try:
        samples = [shown(sample, tokenizer) for sample in chosen(rows)]
        context.first_books.ledger.record_samples(round_.round_id, samples)
    except Exception as exc:  # something to look at must not stop what is looked at
        log.warning("no samples are kept for the round's page (%s: %s)", type(exc).__name__, exc)


def chosen(rows: Rows, most: int = SAMPLES) -> list[Sample]:
    """Of every kind of sample some, evenly spread over the rows; the same for the same rows."""
    planted = {each.content_id for each in rows.planted}
    kinds: dict[str, list[Sample]] = {}
    for row in rows.train:
        for sample in row.samples:
            if sample.kind != SOLUTION and planted.isdisjoint(contents_of(sample)):
                kinds.setdefault(sample.kind, []).append(sample)
    each = max(1, most // max(1, len(kinds)))
    found = [sample for samples in kinds.values() for sample in _spread(samples, each)]
    return found[:most]


def shown(sample: Sample, tokenizer: Any, most_bytes: int = SAMPLE_BYTES) -> ShownSample:
    """The sample as text, in runs that take at most `most_bytes` bytes as JSON."""
    runs = _runs(sample, tokenizer)
    prompt = max(1, sample.prompt_tokens)  # nothing predicts a document's first token
    made = ShownSample(
        contents_of(sample), sample.kind, len(sample.ids), max(0, len(sample.ids) - prompt), tuple(runs)
    )
    room = most_bytes
    while _size(made) > most_bytes and room > FEWEST_CHARACTERS:
        room = room * 3 // 4
        made = ShownSample(made.contents, made.kind, made.tokens, made.learned, tuple(_cut(runs, room)))
    return made


def contents_of(sample: Sample) -> tuple[int, ...]:
    """Ids of the contents that it quotes, each once, in order."""
    return tuple(sorted({sample.content_id, *(extract.content_id for extract in sample.extracts)}))


def _spread(samples: Sequence[Sample], most: int) -> list[Sample]:
    if len(samples) <= most:
        return list(samples)
    return [samples[number * len(samples) // most] for number in range(most)]


def _runs(sample: Sample, tokenizer: Any) -> list[Run]:
    special, prompt = tokenizer.added_tokens_decoder, max(1, sample.prompt_tokens)
    marked = ((at >= prompt, token in special, token) for at, token in enumerate(sample.ids))
    made = []
    for (learned, is_special), tokens in groupby(marked, lambda each: each[:2]):
        ids = [token for *_, token in tokens]
        text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        made.append(Run(text.replace(NUL, REPLACEMENT), learned, is_special))
    return made


def _cut(runs: Sequence[Run], room: int) -> list[Run]:
    """The first runs, of each the beginning and the end: together about `room` characters."""
    kept = runs[:MOST_RUNS]
    dropped = sum(len(run.text) for run in runs[MOST_RUNS:])
    short = sum(len(run.text) for run in kept if run.special)
    long = sum(not run.special for run in kept)
    each = max(2 * FEWEST_CHARACTERS, (room - short) // max(1, long))
    found = [part for run in kept for part in (_halves(run, each) if not run.special else [run])]
    return [*found, Run("", left_out=dropped)] if dropped else found


def _halves(run: Run, most: int) -> list[Run]:
    """A run of more than `most` characters as its beginning and its end; what begins a run is cut least."""
    if len(run.text) <= most:
        return [run]
    head, tail = most * 2 // 3, most - most * 2 // 3
    left_out = len(run.text) - head - tail
    return [
        Run(run.text[:head], run.learned, run.special, left_out),
        Run(run.text[-tail:], run.learned, run.special),
    ]


def _size(sample: ShownSample) -> int:
    """Bytes of the runs as PostgreSQL writes them."""
    return len(json.dumps(sample.runs_as_json(), ensure_ascii=False).encode(errors="replace"))
