"""A tiny random model of a true architecture, real code in the database, and a daemon to train on it."""

import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.core.db import Database, as_json
from services.core.settings import PROJECT, Target

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def standard_library(most: int) -> list[str]:
    """Real code: modules of the standard library between 2 and 6 kB."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted(folder.glob("*/*.py"))
        if 2000 < path.stat().st_size < 6000
    ]
    return texts[:most]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of 2 layers with a byte-pair tokenizer trained on real code and a chat template."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-model")
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        standard_library(40), vocab_size=1000, special_tokens=special, show_progress=False
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=TEMPLATE,
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        vocab_size=len(tokenizer), num_key_value_heads=2, max_position_embeddings=2048, **shape
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def recipe_file(tiny_model: Path, tmp_path: Path) -> Path:
    """A recipe that trains the tiny model in seconds, and learns for certain."""
    path = tmp_path / "tiny.yaml"
    path.write_text(
        f"base_model: {tiny_model}\nmethod: lora\nlora_r: 8\nlearning_rate: 0.02\nmax_length: 512\n"
        "batch_size: 2\ngradient_accumulation_steps: 1\nheld_out_min: 8\nvalidation_min: 4\n"
        "held_out_pairs: 1\neval_steps: 5\nearly_stopping_threshold: 0.0\ngradient_checkpointing: false\n"
    )
    return path


@pytest.fixture
def store(database: Database) -> Callable[[list[str]], None]:
    """Puts texts into the ledger as the processor would: one source, a file and a cluster each."""

    def put(texts: list[str]) -> None:
        with database.transaction() as tx:
            cursor = tx._cursor
            cursor.execute(
                "INSERT INTO sources (name) VALUES ('repo')"
                " ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id"
            )
            source = cursor.fetchone()[0]
            for text in texts:
                digest = hashlib.sha256(text.encode()).digest()
                cursor.execute(
                    "WITH new AS (SELECT nextval('contents_id_seq') AS id)"
                    " INSERT INTO contents (id, sha256, cluster_id, language, text, bytes, lines, score,"
                    " score_reasons, scorer_version) OVERRIDING SYSTEM VALUE"
                    " SELECT new.id, %s, new.id, 'python', %s, %s, %s, 90, %s, 1 FROM new RETURNING id",
                    (digest, text, len(text.encode()), text.count("\n") + 1, as_json({})),
                )
                content_id = cursor.fetchone()[0]
                cursor.execute(
                    "INSERT INTO files (source_id, path, size_bytes, mtime_ns, content_id)"
                    " VALUES (%s, %s, %s, 0, %s)",
                    (source, f"{digest.hex()}.py", len(text), content_id),
                )

    return put


class Trainer:
    """The daemon as a real process."""

    def __init__(self, target: Target, recipe_file: Path, home: Path) -> None:
        self.adapters = home / "adapters"
        self.checkpoints = home / "checkpoints"
        self.cache = home / "cache"
        self.log = home / "trainer.log"
        self._environment = {
            **os.environ,
            "POSTGRES_HOST": target.host,
            "POSTGRES_PORT": str(target.port),
            "POSTGRES_DB": target.dbname,
            "POSTGRES_USER": target.user,
            "POSTGRES_PASSWORD": target.password.get_secret_value(),
            "RECIPE": str(recipe_file),
            "ADAPTERS_DIR": str(self.adapters),
            "CHECKPOINTS_DIR": str(self.checkpoints),
            "CACHE_DIR": str(self.cache),
            "LOGS_DIR": str(home / "logs"),
            "MIN_NEW_FILES": "10",
            "CHECK_INTERVAL": "1",
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.trainer"],
                cwd=PROJECT,
                env={**self._environment, **environment},
                stdout=log,
                stderr=log,
            )
        return self.process

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(40)


@pytest.fixture
def trainer(target: Target, recipe_file: Path, tmp_path: Path) -> Iterator[Trainer]:
    daemon = Trainer(target, recipe_file, tmp_path)
    yield daemon
    daemon.stop()
    if daemon.process is not None:
        sys.stderr.write(daemon.log.read_text()[-6000:])
