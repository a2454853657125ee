"""Writing code with a model: prompts in, completions out, in batches."""

from services.trainer.generation.complete import complete
from services.trainer.generation.graphs import Turns
from services.trainer.generation.prompts import asks_in_template, prompt_ids
from services.trainer.generation.request import Completion, Request

__all__ = ["Completion", "Request", "Turns", "asks_in_template", "complete", "prompt_ids"]
