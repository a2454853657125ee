"""`python -m services.trainer.server SOCKET_FD`: the server on a socket that its parent has opened.

The recipe is read as JSON from standard input: its base model, in the way it is trained on (NF4 for qlora).
"""

import json
import logging
import os
import socket
import sys
from typing import Any

import uvicorn
from transformers.utils import logging as transformers_logging

from services.core.errors import RatchetError
from services.core.process import die_with_parent
from services.core.settings import Settings, from_environment
from services.trainer import model
from services.trainer.generation.writer import ends
from services.trainer.recipes.recipe import Recipe
from services.trainer.server.app import create_app
from services.trainer.server.models import Models

GRACE = 2  # seconds: the front has waited already


def main() -> int:
    """Exit status 1 with a line on standard error when the base model cannot be loaded."""
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    transformers_logging.set_verbosity_error()  # its handlers log a line a request
    try:
        recipe = Recipe.model_validate(json.load(sys.stdin))
        models, tokenizer = load(recipe, from_environment())
    except RatchetError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    config = uvicorn.Config(
        create_app(models, tokenizer),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
    return 0


def load(recipe: Recipe, settings: Settings) -> tuple[Models, Any]:
    """The base model, ready to be asked, and its tokenizer."""
    token = settings.hub_token
    source = model.locate(recipe.base_model, recipe.revision, settings.cache_dir)
    base = model.load_base(recipe, source, token).eval()
    base.set_attn_implementation("sdpa")  # the training engine's knows documents, not what is cached
    tokenizer = model.load_tokenizer(source, token)
    base.generation_config.eos_token_id = sorted(ends(base, tokenizer))  # as where answers are judged
    return Models(base, recipe.base_model), tokenizer


if __name__ == "__main__":
    sys.exit(main())
