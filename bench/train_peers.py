"""What Ratchet's training speed is compared with: a process trains one arm and ends with a line of JSON.

    python bench/random_model.py 7b /dev/shm/7b
    python bench/train_peers.py --arm trl --model /dev/shm/7b

seeds            padded batches of 4, PEFT on bitsandbytes NF4, fp32 adapters under autocast, dropout 0.05,
                 recomputation: how the seeds train
trl              TRL's SFTTrainer as it ships (recomputation, bf16 adapters), on packed rows
unsloth          Unsloth as it ships: its own offloading recomputation
unsloth-nockpt   Unsloth without recomputation

Every arm trains adapters on all linear layers with 8-bit AdamW, without clipping, on the same documents
in the same order (bench/train_data.py). A step's loss is the mean over its targets, in nats. Tokens are
real ones: padding does not count. The first `--warm` steps pass unmeasured. Needs a CUDA device; seeds
and trl also run on the CPU, with torch's AdamW, and trl's kernels then under TRITON_INTERPRET=1.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from bench.train_data import LENGTH, VOCABULARY, Document, Kind, Step, steps  # noqa: E402

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LEARNING_RATE = 2e-5
IGNORED = -100  # the label without a loss
GIB = 2**30
QUIET = {  # nothing is looked up, reported or cached outside this process
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "UNSLOTH_DISABLE_STATISTICS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class Job:
    """What the command line asked for."""

    arm: str
    model: Path
    micro_batch: int  # rows at once; documents at once for `seeds`
    rows: int  # a step
    length: int  # tokens a row
    rank: int
    warm: int  # steps
    steps: int  # measured ones
    data: Kind
    seed: int
    cap_gib: float | None

    def work(self) -> list[Step]:
        """The steps to train, the warm ones first."""
        config = json.loads((self.model / "config.json").read_text(encoding="utf-8"))
        vocabulary = min(VOCABULARY, config["vocab_size"])
        number = self.warm + self.steps
        return steps(number, self.rows, self.seed, self.data, self.length, vocabulary)


@dataclass
class Clock:
    """Times the steps after the warm ones, and the memory they take."""

    warm: int
    started: float = field(default_factory=time.perf_counter)
    marks: dict[str, float] = field(default_factory=dict)  # seconds since `started`
    steps: int = 0

    def mark(self, name: str) -> None:
        """Note when everything queued on the device is done."""
        if _cuda():
            _torch().cuda.synchronize()
        self.marks[name] = time.perf_counter() - self.started

    def step_ended(self) -> None:
        self.steps += 1
        self.mark("end")
        if self.steps == self.warm:
            self.marks["warm"] = self.marks["end"]
            if _cuda():
                _torch().cuda.reset_peak_memory_stats()


def seeds(job: Job, work: list[Step], clock: Clock) -> list[float]:
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    model = prepare_model_for_kbit_training(
        _quantised(job.model), gradient_checkpointing_kwargs={"use_reentrant": False}
    )
    lora = LoraConfig(
        r=job.rank,
        lora_alpha=2 * job.rank,
        lora_dropout=0.05,
        target_modules=LINEAR,
        task_type="CAUSAL_LM",
    )
    return _train(get_peft_model(model, lora), work, lambda step: _padded(step, job.micro_batch), clock)


def trl(job: Job, work: list[Step], clock: Clock) -> list[float]:
    """Rows are packed before, as TRL's `bfd_split` packs them, so that steps hold the same documents."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoTokenizer, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    if any(len(step.rows) != job.rows for step in work):
        raise ValueError(f"a step packs to fewer than {job.rows} rows, which the trainer cannot know")
    if job.rows % job.micro_batch:
        raise ValueError(f"--rows {job.rows} is no multiple of --micro-batch {job.micro_batch}")
    rows = [row for step in work for row in step.rows]
    ids = [[token for document in row for token in document] for row in rows]
    lengths = [[len(document) for document in row] for row in rows]
    dataset = Dataset.from_dict({"input_ids": ids, "labels": ids, "seq_lengths": lengths})
    losses: list[float] = []

    class Watch(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            clock.mark("loaded")

        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.step_ended()

        def on_log(self, *_: Any, logs: dict[str, float], **__: Any) -> None:
            losses.extend([logs["loss"]] if "loss" in logs else [])

    with tempfile.TemporaryDirectory() as folder:
        trainer = SFTTrainer(
            model=_quantised(job.model),
            args=SFTConfig(
                output_dir=folder,
                packing=True,
                packing_strategy="bfd_split",
                max_length=job.length,
                dataset_kwargs={"skip_prepare_dataset": True},
                train_sampling_strategy="sequential",
                per_device_train_batch_size=job.micro_batch,
                gradient_accumulation_steps=job.rows // job.micro_batch,
                max_steps=len(work),
                optim="adamw_8bit" if _cuda() else "adamw_torch",
                learning_rate=LEARNING_RATE,
                lr_scheduler_type="constant",
                max_grad_norm=0.0,
                logging_steps=1,
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
                use_cpu=not _cuda(),
                seed=job.seed,
            ),
            train_dataset=dataset,
            processing_class=AutoTokenizer.from_pretrained(job.model),
            peft_config=LoraConfig(r=job.rank, lora_alpha=2 * job.rank, target_modules=LINEAR),
            callbacks=[Watch()],
        )
        trainer.train()
    return losses


def unsloth(job: Job, work: list[Step], clock: Clock) -> list[float]:
    return _unsloth(job, work, clock, "unsloth")


def unsloth_nockpt(job: Job, work: list[Step], clock: Clock) -> list[float]:
    return _unsloth(job, work, clock, False)


def _unsloth(job: Job, work: list[Step], clock: Clock, checkpointing: str | bool) -> list[float]:
    if not _cuda():
        raise RuntimeError(f"arm {job.arm} needs a CUDA device, and torch sees none")
    # its generated modules, else written into the working folder
    os.environ.setdefault("UNSLOTH_COMPILE_LOCATION", tempfile.mkdtemp(prefix="unsloth-"))
    from unsloth import FastLanguageModel  # before transformers and PEFT, which it patches

    model, _ = FastLanguageModel.from_pretrained(
        str(job.model), max_seq_length=job.length, load_in_4bit=True, dtype=_torch().bfloat16
    )
    model = FastLanguageModel.get_peft_model(
        model,
        r=job.rank,
        lora_alpha=2 * job.rank,
        lora_dropout=0,
        bias="none",
        target_modules=LINEAR,
        use_gradient_checkpointing=checkpointing,
        max_seq_length=job.length,
        random_state=job.seed,
    )
    return _train(model, work, lambda step: _packed(step, job.micro_batch), clock)


ARMS: dict[str, tuple[Callable[[Job, list[Step], Clock], list[float]], int]] = {  # and the micro-batch
    "seeds": (seeds, 4),
    "trl": (trl, 1),  # it flattens more into one sequence, whose mask grows with the square
    "unsloth": (unsloth, 4),
    "unsloth-nockpt": (unsloth_nockpt, 4),
}


def _train(
    model: Any, work: list[Step], batches: Callable[[Step], Iterator[dict[str, Any]]], clock: Clock
) -> list[float]:
    """The plain loop of the arms without a trainer; the loss of each step."""
    torch = _torch()
    device = "cuda" if _cuda() else "cpu"
    model.train()
    optimizer = _optimizer([weight for weight in model.parameters() if weight.requires_grad])
    losses = []
    clock.mark("loaded")
    for step in work:
        total = torch.zeros((), device=device)
        targets = torch.tensor(step.targets, device=device)
        for batch in batches(step):
            inputs = {
                name: value if name == "packed_seq_lengths" else value.to(device)
                for name, value in batch.items()
            }
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = model(**inputs, use_cache=False, num_items_in_batch=targets).loss
            loss.backward()
            total += loss.detach()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(total)
        clock.step_ended()
    return [float(loss) for loss in losses]


def _padded(step: Step, size: int) -> Iterator[dict[str, Any]]:
    """Batches (size, longest document) in the documents' order."""
    torch = _torch()
    for documents in _chunks(step.documents, size):
        longest = max(map(len, documents))
        ids = torch.zeros(len(documents), longest, dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for row, document in enumerate(documents):
            ids[row, : len(document)] = torch.tensor(document)
            mask[row, : len(document)] = 1
        yield {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, IGNORED)}


def _packed(step: Step, size: int) -> Iterator[dict[str, Any]]:
    """`size` rows at once: (size, length) where each is one document, else flat with Unsloth's lengths."""
    torch = _torch()
    for rows in _chunks(step.rows, size):
        documents: list[Document] = [document for row in rows for document in row]
        lengths = [len(document) for document in documents]
        if len(documents) == len(rows) and len(set(lengths)) == 1:
            ids = torch.tensor(documents)
            yield {"input_ids": ids, "labels": ids}
        else:
            ids = torch.tensor([token for document in documents for token in document])
            positions = torch.cat([torch.arange(length) for length in lengths])
            yield {
                "input_ids": ids[None],  # (1, T)
                "labels": ids.masked_fill(positions == 0, IGNORED)[None],
                "position_ids": positions[None],
                "packed_seq_lengths": torch.tensor(lengths, dtype=torch.int32),
            }


def _chunks(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _quantised(folder: Path) -> Any:
    """The model in NF4 with double quantisation, as QLoRA has it."""
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    bfloat16 = _torch().bfloat16
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=bfloat16,
        device_map={"": 0 if _cuda() else "cpu"},
        quantization_config=BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=bfloat16,
        ),
    )
    model.config.use_cache = False
    return model


def _optimizer(weights: list[Any]) -> Any:
    if _cuda():
        optimizers: Any = import_module("bitsandbytes.optim")  # untyped
        return optimizers.AdamW8bit(weights, lr=LEARNING_RATE, weight_decay=0.0)
    return _torch().optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.0)


def _torch() -> Any:
    import torch

    return torch


def _cuda() -> bool:
    return bool(_torch().cuda.is_available())


def measure(job: Job) -> dict[str, Any]:
    """The figures of one arm. Raises whatever the arm raises."""
    torch = _torch()
    torch.manual_seed(job.seed)
    if job.cap_gib is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(job.cap_gib * GIB / total)
    work = job.work()
    clock = Clock(job.warm)
    losses = ARMS[job.arm][0](job, work, clock)
    seconds = clock.marks["end"] - clock.marks["warm"]
    return {
        "real_tokens_per_s": round(sum(step.tokens for step in work[job.warm :]) / seconds, 1),
        "seconds": round(seconds, 3),
        "peak_gib": round(torch.cuda.max_memory_allocated() / GIB, 2) if _cuda() else None,
        "reserved_gib": round(torch.cuda.max_memory_reserved() / GIB, 2) if _cuda() else None,
        "losses": [round(loss, 5) for loss in losses],
        "load_seconds": round(clock.marks["loaded"], 1),
        "warm_seconds": round(clock.marks["warm"] - clock.marks["loaded"], 1),
        "versions": _versions("torch", "transformers", "peft", "trl", "unsloth", "bitsandbytes"),
    }


def _versions(*names: str) -> dict[str, str]:
    installed = {
        distribution.metadata["Name"]: distribution.version for distribution in metadata.distributions()
    }
    return {name: installed[name] for name in names if name in installed}


def _job() -> Job:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arm", choices=ARMS, required=True)
    parser.add_argument("--model", type=Path, required=True, help="a folder from bench/random_model.py")
    parser.add_argument("--rows", type=int, default=16, help="rows of an optimizer step")
    parser.add_argument(
        "--micro-batch", type=int, help="rows at once (documents for seeds); each arm has its own"
    )
    parser.add_argument("--length", type=int, default=LENGTH, help="tokens of a row")
    parser.add_argument("--rank", type=int, default=256)
    parser.add_argument("--warm", type=int, default=2, help="steps before the measured ones, at least 1")
    parser.add_argument("--steps", type=int, default=4, help="measured steps")
    parser.add_argument("--data", choices=("full", "code"), default="full")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cap-gib", type=float, help="the device memory this process may take")
    options = vars(parser.parse_args())
    if options["micro_batch"] is None:
        options["micro_batch"] = ARMS[options["arm"]][1]
    if options["warm"] < 1:
        parser.error(f"--warm {options['warm']}: measuring starts at the end of a warm step, so at least 1")
    return Job(**options)


def main() -> int:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    job = _job()
    result = asdict(job) | {"model": str(job.model)}
    try:
        result |= measure(job)
    except Exception as error:  # one arm's failure is a line of the table, not the table's end
        traceback.print_exc()
        result["error"] = f"{type(error).__name__}: {str(error)[:400]}"
    print(json.dumps(result), flush=True)
    return 1 if "error" in result else 0


if __name__ == "__main__":
    sys.exit(main())
