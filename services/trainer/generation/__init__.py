"""Writing code with a model: prompts in, completions out, in batches."""

from services.trainer.generation.complete import complete
from services.trainer.generation.prompts import prompt_ids
from services.trainer.generation.request import Completion, Request

__all__ = ["Completion", "Request", "complete", "prompt_ids"]
