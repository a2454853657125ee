"""What rounds keep for their pages: samples as the model saw them, the end of the log, what was written."""

from datetime import timedelta
from typing import Any

from services.core.db import Transaction, as_json
from services.core.models import Json

PROMPT = "Complete the following {} code:\n\n```{}\n"
LOG = (
    (0, "INFO", "round-{number:04} of demo, attempt 1"),
    (4, "INFO", "train: 37 contents, 112 samples, 31 rows, 15,404 tokens"),
    (9, "WARNING", "going on from the champion's adapter of rank 16: lora_r 16 applies to a new track only"),
    (21, "INFO", "base: 0.7684 bits per byte over 16 contents"),
    (98, "INFO", "train step 2: loss 1.774, learning_rate 8.333e-05, grad_norm 1.741, tokens_per_s 837.2"),
    (282, "INFO", "eval step 24: eval_loss 1.402, bits_per_byte 0.7584"),
    (340, "WARNING", "the file \u202eyp.tset\u202c.py of drop <i>2026</i> & co.zip\nis quoted here"),
)
FAILED = (1200, "ERROR", "out of GPU memory: set BATCH_SIZE or MAX_LENGTH lower (CUDA out of memory)")
ANSWER = "    return sum(item.amount for item in self.items if item.is_open)"
WRITTEN = ("    return sum(item.amount for item in self.items)", "    total = 0\n    for item in items:")
PROGRAM = "    for left, right in pairwise(sorted(numbers)):\n        if right - left < threshold:"


def fill(transaction: Transaction) -> None:
    """For every round that there is."""
    transaction._cursor.execute("SELECT id, number, state, opened_at FROM rounds ORDER BY id")
    for round_ in transaction._cursor.fetchall():
        _samples(transaction, round_.id)
        _log(transaction, round_)


def _samples(transaction: Transaction, round_id: int) -> None:
    """Of four contents, those with names that nobody should trust before others."""
    transaction._cursor.execute(
        "SELECT c.id, c.language, c.text FROM round_contents rc JOIN contents c ON c.id = rc.content_id"
        " WHERE rc.round_id = %s AND rc.role = 'train'"
        " ORDER BY c.text LIKE '%%owned%%' DESC, rc.position LIMIT 4",
        (round_id,),
    )
    for number, content in enumerate(transaction._cursor.fetchall(), 1):
        runs = _fim(content) if number == 4 else _pair(content)
        tokens = sum(len(run["text"]) for run in runs) // 3
        transaction.execute(
            "record_sample",
            round_id=round_id,
            number=number,
            contents=[content.id],
            kind="fim-psm" if number == 4 else "completion",
            tokens=tokens,
            learned=tokens * 3 // 5,
            runs=as_json(runs),
        )


def _pair(content: Any) -> list[Json]:
    cut = content.text.index("\n", len(content.text) // 3) + 1
    answer = content.text[cut:]
    kept: Json = {"text": answer[:900], "learned": True}
    return [
        {"text": "<|im_start|>", "special": True},
        {"text": "user\n" + PROMPT.format(content.language.capitalize(), content.language)},
        {"text": content.text[:cut][:700] + "```"},
        {"text": "<|im_end|>", "special": True},
        {"text": "\n"},
        {"text": "<|im_start|>", "special": True},
        {"text": "assistant\n"},
        {**kept, "left_out": len(answer) - 900} if len(answer) > 900 else kept,
        {"text": "<|im_end|>", "special": True, "learned": True},
    ]


def _fim(content: Any) -> list[Json]:
    first, second = len(content.text) // 4, len(content.text) // 2
    return [
        {"text": "<fim_prefix>", "special": True},
        {"text": content.text[:first][:600]},
        {"text": "<fim_suffix>", "special": True},
        {"text": content.text[second:][:600]},
        {"text": "<fim_middle>", "special": True},
        {"text": content.text[first:second][:600], "learned": True},
        {"text": "<|endoftext|>", "special": True, "learned": True},
    ]


def _log(transaction: Transaction, round_: Any) -> None:
    lines = [*LOG, FAILED] if round_.state == "failed" else LOG
    transaction.execute(
        "record_round_log",
        round_id=round_.id,
        at=[round_.opened_at + timedelta(seconds=seconds) for seconds, _, _ in lines],
        levels=[level for _, level, _ in lines],
        lines=[line.format(number=round_.number) for _, _, line in lines],
    )


def answers(transaction: Transaction) -> None:
    """What was written for the suites' items; a forgetting would have taken it out."""
    for metrics, detail in (
        (["exact_match", "edit_similarity"], {"kind": "line", "answer": ANSWER}),
        (["pass@1"], {"samples": 1}),
    ):
        written = "completion" if "samples" in detail else "written"
        right, wrong = (PROGRAM, WRITTEN[1]) if "samples" in detail else (ANSWER, WRITTEN[0])
        for value, text in ((1, right), (0, wrong)):
            results = {"results": {"passed" if value else "wrong_answer": 1}} if "samples" in detail else {}
            transaction._cursor.execute(
                "UPDATE suite_scores SET detail = %s WHERE metric = ANY (%s) AND round(value) = %s",
                (as_json({**detail, **results, written: text}), metrics, value),
            )
