"""Does the score order files by what a model learns from them? Ends with one line of JSON.

    .venv/bin/python bench/score_utility.py --prepare corpus.jsonl.gz PATH…
    python bench/score_utility.py --corpus corpus.jsonl.gz --model FOLDER [--seeds 3] [--by-figure]

The first line makes the corpus on a CPU: every PATH is one package; what the filters keep of it, with
score and figures. The second trains a small model (SmolLM2-135M: FOLDER as `save_pretrained`
writes it) on a GPU, all parameters, bf16 autocast over fp32 weights, once for each third of the
files by score within their language, on equal numbers of tokens of each language, and once for a
random third. Every run is judged by bits per byte on the same held-out files: a random sample of
packages that no run trains on. A seed changes which files of the third are drawn and in which order.

`--by-figure` adds, for each reason of the score, runs on the upper and the lower third by its points
alone: which reasons earn their points.
"""

import argparse
import gzip
import hashlib
import json
import math
import random
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

MAX_PACKAGE_BYTES = 900_000  # of one language: no package makes up most of a third
MAX_FILE_BYTES = 60_000
MIN_PACKAGES = 4  # of a language, else it is left out
MIN_LANGUAGE_BYTES = 4_000_000
HELD_OUT = 0.2  # of the packages of each language
HELD_OUT_BYTES = 1_200_000
CONTEXT = 1_024  # tokens
BATCH = 32  # sequences a step
LEARNING_RATE = 1e-4
WARM_UP = 0.1  # of the steps
THIRDS = ("top", "middle", "bottom")


@dataclass(frozen=True)
class File:
    """A row of the corpus and its tokens."""

    language: str
    package: str
    score: int
    points: dict[str, int]
    figures: dict[str, float]
    size_bytes: int
    tokens: list[int]


# Preparing, on a CPU


def prepare(target: Path, paths: list[Path]) -> None:
    from bench.reasons import Clock, files, judge
    from services.processor.values import Rejection

    seen: set[bytes] = set()
    sizes: Counter[tuple[str, str]] = Counter()
    rows = 0
    with gzip.open(target, "wt", encoding="utf-8", compresslevel=9) as out:
        for root in paths:
            candidates = [path for path in files(root) if path.stat().st_size <= MAX_FILE_BYTES]
            random.Random(root.name).shuffle(candidates)
            for path in candidates:
                outcome = judge(str(path.relative_to(root)), path.read_bytes(), Clock())
                if isinstance(outcome, Rejection):
                    continue
                code, scored = outcome
                digest = hashlib.sha256("".join(code.text.split()).encode()).digest()
                key = (code.language, root.name)
                if digest in seen or sizes[key] > MAX_PACKAGE_BYTES:
                    continue
                seen.add(digest)
                sizes[key] += len(code.data)
                row = {
                    "text": code.text,
                    "language": code.language,
                    "package": root.name,
                    "path": code.path,
                    "score": scored.value,
                    "points": scored.points,
                    "figures": figures_of(code.figures),
                }
                out.write(json.dumps(row) + "\n")
                rows += 1
    by_language: Counter[str] = Counter()
    for (language, _), size in sizes.items():
        by_language[language] += size
    print(
        f"{rows} files, {target.stat().st_size / 1e6:.1f} MB packed; bytes: {dict(by_language.most_common())}"
    )


def figures_of(figures: Any) -> dict[str, float]:
    """Every figure of the score's ramps and a few that might become one."""
    names = (
        "documented", "definitions", "body", "names", "unique", "deep", "wide_lines", "unfinished", "written",
        "checks", "strings", "imports", "wording", "digits", "blanks", "mean_line",
    )  # fmt: skip
    return {name: round(float(getattr(figures, name)), 4) for name in names}


# The split


def read(corpus: Path, tokenizer: Any) -> list[File]:
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    ids = tokenizer([row["text"] for row in rows], add_special_tokens=False)["input_ids"]
    return [
        File(
            row["language"], row["package"], row["score"], row["points"], row["figures"],
            len(row["text"].encode()), tokens,
        )
        for row, tokens in zip(rows, ids, strict=True)
    ]  # fmt: skip


def split(files: list[File], salt: str) -> tuple[list[File], list[File]]:
    """Files to train on and held-out files, of different packages; small languages are left out."""
    train, held_out = [], []
    languages = sorted({file.language for file in files})
    for language in languages:
        of_language = [file for file in files if file.language == language]
        packages = sorted({file.package for file in of_language}, key=lambda name: _mixed(salt + name))
        if len(packages) < MIN_PACKAGES or sum(file.size_bytes for file in of_language) < MIN_LANGUAGE_BYTES:
            continue
        apart = set(packages[: max(1, round(HELD_OUT * len(packages)))])
        train += [file for file in of_language if file.package not in apart]
        held_out += [file for file in of_language if file.package in apart]
    random.Random(salt).shuffle(held_out)
    share = HELD_OUT_BYTES / max(sum(min(file.size_bytes, 3 * CONTEXT) for file in held_out), 1)
    return train, held_out[: max(1, int(share * len(held_out)))]


def _mixed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def thirds(files: list[File], rank: Callable[[File], float]) -> dict[str, list[File]]:
    """Upper, middle and lower third by rank within each language, each with a third of its tokens."""
    parts: dict[str, list[File]] = {name: [] for name in THIRDS}
    for language in sorted({file.language for file in files}):
        of_language = [file for file in files if file.language == language]
        random.Random(language).shuffle(of_language)  # equal ranks fall where they fall
        of_language.sort(key=rank, reverse=True)
        total, so_far = sum(len(file.tokens) for file in of_language), 0
        for file in of_language:
            parts[THIRDS[min(2, 3 * so_far // total)]].append(file)
            so_far += len(file.tokens)
    return parts


def budget_of(files: list[File], share: float) -> dict[str, int]:
    """Tokens of each language that every run trains on: a share of a third of what there is."""
    tokens: Counter[str] = Counter()
    for file in files:
        tokens[file.language] += len(file.tokens)
    return {language: int(share * count / 3) for language, count in tokens.items()}


def sequences(files: list[File], budget: dict[str, int], seed: int, end: int) -> list[list[int]]:
    """Files packed into sequences of CONTEXT tokens, each language to its budget, in random order."""
    order = random.Random(seed)
    shuffled = order.sample(files, len(files))
    used: Counter[str] = Counter()
    streams: dict[str, list[int]] = defaultdict(list)
    for file in shuffled:
        room = budget[file.language] - used[file.language]
        if room > 0:
            taken = [*file.tokens, end][:room]
            used[file.language] += len(taken)
            streams[file.language] += taken
    packed = [
        stream[at : at + CONTEXT]
        for _, stream in sorted(streams.items())
        for at in range(0, len(stream) - CONTEXT + 1, CONTEXT)
    ]
    order.shuffle(packed)
    return packed


# Training and judging, on a GPU


def train(model: Any, packed: list[list[int]]) -> float:
    """One pass; the mean loss of the last tenth of the steps, in nats a token."""
    import torch

    device = next(model.parameters()).device
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0, betas=(0.9, 0.95))
    batches = [packed[at : at + BATCH] for at in range(0, len(packed) - BATCH + 1, BATCH)]
    steps, losses = len(batches), []
    model.train()
    for step, batch in enumerate(batches):
        rise, fall = (step + 1) / max(WARM_UP * steps, 1), (steps - step) / max((1 - WARM_UP) * steps, 1)
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, rise, fall)
        ids = torch.tensor(batch, device=device)  # (BATCH, CONTEXT)
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return float(torch.stack(losses[-max(1, steps // 10) :]).mean())


def bits_per_byte(model: Any, files: list[File], begin: int) -> dict[str, float]:
    """Of CONTEXT tokens anywhere in each file: by language, and the mean over languages as "all".

    Not of its beginning: files full of beginnings (licences, imports) would seem the best to learn from.
    """
    import torch

    device = next(model.parameters()).device
    model.eval()
    bits: defaultdict[str, float] = defaultdict(float)
    sizes: defaultdict[str, float] = defaultdict(float)
    ordered = sorted(files, key=lambda file: len(file.tokens))
    for batch in (ordered[at : at + 32] for at in range(0, len(ordered), 32)):
        rows = [[begin, *window(file.tokens)] for file in batch]
        width = max(map(len, rows))
        ids = torch.tensor([row + [begin] * (width - len(row)) for row in rows], device=device)
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
            logits = model(input_ids=ids).logits[:, :-1].float()
        nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        for file, row, losses in zip(batch, rows, nats, strict=True):
            share = (len(row) - 1) / len(file.tokens)
            bits[file.language] += float(losses[: len(row) - 1].sum()) / math.log(2)
            sizes[file.language] += file.size_bytes * share
    by_language = {language: bits[language] / sizes[language] for language in sorted(bits)}
    return by_language | {"all": statistics.mean(by_language.values())}


def window(tokens: list[int]) -> list[int]:
    """CONTEXT - 1 tokens of a file, the same in every run."""
    start = random.Random(len(tokens)).randint(0, max(0, len(tokens) - CONTEXT + 1))
    return tokens[start : start + CONTEXT - 1]


def _figure(file: File, name: str) -> float:
    return file.figures[name]


def arms(files: list[File], by_figure: bool) -> Iterator[tuple[str, list[File]]]:
    """What to train on, by name."""
    yield from thirds(files, lambda file: file.score).items()
    yield "random", files
    if by_figure:
        for figure in sorted(files[0].figures):
            parts = thirds(files, partial(_figure, name=figure))
            yield f"+{figure}", parts["top"]
            yield f"-{figure}", parts["bottom"]


def run(args: argparse.Namespace) -> dict[str, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    started = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).to(device)
    untrained = {name: value.clone() for name, value in model.state_dict().items()}
    pool, held_out = split(read(args.corpus, tokenizer), args.salt)
    budget, figure_budget = budget_of(pool, args.share), budget_of(pool, args.figure_share)
    end = tokenizer.eos_token_id
    base = bits_per_byte(model, held_out, end)
    print(f"{len(pool)} files to train on, {len(held_out)} held out, tokens a run {budget}")
    print(f"before training {_shown(base)}", flush=True)
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for seed in range(args.seeds):
        for name, part in arms(pool, args.by_figure):
            if time.monotonic() - started > args.seconds:
                break
            if (of_figure := name[0] in "+-") and seed >= args.figure_seeds:
                continue
            model.load_state_dict(untrained)
            torch.manual_seed(seed)
            loss = train(model, sequences(part, figure_budget if of_figure else budget, seed, end))
            found[name].append(bits_per_byte(model, held_out, end))
            seconds = time.monotonic() - started
            print(
                f"seed {seed} {name:<14} loss {loss:.3f} {_shown(found[name][-1])} {seconds:.0f} s",
                flush=True,
            )
    return verdict(base, found, budget)


def _shown(bits: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in bits.items())


def verdict(
    base: dict[str, float], found: dict[str, list[dict[str, float]]], budget: dict[str, int]
) -> dict[str, Any]:
    """Mean and spread over the seeds of each arm, and whether the thirds are ordered."""
    mean = {name: statistics.mean(bits["all"] for bits in runs) for name, runs in found.items()}
    spread = {
        name: statistics.stdev(bits["all"] for bits in runs) if len(runs) > 1 else 0.0
        for name, runs in found.items()
    }
    print("\nbits per byte on the held-out files, mean over languages ± standard deviation over seeds")
    for name in (*THIRDS, "random"):
        if name in mean:
            print(f"  {name:<8}{mean[name]:.4f} ± {spread[name]:.4f}")
    figures = sorted(name[1:] for name in mean if name[0] == "+" and "-" + name[1:] in mean)
    if figures:
        print("upper third less lower third, by figure: below nought, more of it helps")
    effects = {name: mean["+" + name] - mean["-" + name] for name in figures}
    for name, effect in sorted(effects.items(), key=lambda item: item[1]):
        print(f"  {name:<14}{effect:+.4f}")
    ordered_seeds = sum(
        top["all"] < middle["all"] < bottom["all"]
        for top, middle, bottom in zip(*(found[name] for name in THIRDS), strict=False)
    )
    return {
        "bits_per_byte": {name: round(mean[name], 4) for name in (*THIRDS, "random") if name in mean},
        "spread": {name: round(spread[name], 4) for name in (*THIRDS, "random") if name in mean},
        "before": round(base["all"], 4),
        "ordered": mean["top"] < mean["middle"] < mean["bottom"],
        "ordered_seeds": ordered_seeds,
        "seeds": len(found["top"]),
        "tokens": sum(budget.values()),
        "effects": {name: round(effect, 4) for name, effect in effects.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prepare", type=Path, metavar="OUT.jsonl.gz")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--figure-seeds", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.1, help="of a third that each run trains on")
    parser.add_argument("--figure-share", type=float, default=0.25, help="likewise, of the runs by figure")
    parser.add_argument("--salt", default="a", help="another word holds other packages out")
    parser.add_argument("--by-figure", action="store_true")
    parser.add_argument("--seconds", type=float, default=540.0, help="no run is begun after so long")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    args = parser.parse_args()
    if args.prepare:
        prepare(args.prepare, args.paths)
    elif args.corpus and args.model:
        print(json.dumps(run(args)))
    else:
        parser.error("say --prepare OUT.jsonl.gz PATH…, or --corpus FILE --model FOLDER")


if __name__ == "__main__":
    main()
