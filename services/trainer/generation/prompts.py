"""A text as a prompt: as it is, or as a question in the chat template."""

from typing import Any

from services.trainer.samples.encoder import Encoder
from services.trainer.samples.template import frame


def prompt_ids(tokenizer: Any, text: str, *, chat: bool, instruction: str | None = None) -> list[int]:
    """The ids that a model is to go on from. What looks like a special token in the text stays text.

    chat: in the template, up to where the assistant begins; `instruction` is put above the text. Without
    chat the instruction is too, and the text begins as a document does. Raises ConfigurationError for a
    tokenizer without a chat template.
    """
    asked = f"{instruction}\n\n{text}" if instruction else text
    encoder = Encoder(tokenizer)
    if not chat:
        return [*encoder.begin, *encoder.plain([asked])[0]]
    around = frame(encoder)
    return [*around.before, *encoder.plain([asked])[0], *around.between, *around.lead]


def asks_in_template(objective: str, tokenizer: Any) -> bool:
    """Whether a model of a recipe with this objective is asked in the chat template, as it was trained.

    A team is wherever there is a template (`reinforcement.prompting`).
    """
    if objective == "reinforcement":
        return bool(getattr(tokenizer, "chat_template", None))
    return objective == "completion_pairs"
