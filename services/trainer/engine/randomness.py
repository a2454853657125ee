"""Everything random in a step follows from where it stands: no generator's state has to be kept."""

import hashlib
import random

import numpy as np
import torch


def seed(*where: int) -> None:
    """Seed every generator (torch on all devices, numpy, Python) by a position: round, step, rank."""
    digest = hashlib.sha256(" ".join(map(str, where)).encode()).digest()
    number = int.from_bytes(digest[:4], "little")
    torch.manual_seed(number)
    np.random.seed(number)  # noqa: NPY002  the generator that libraries use
    random.seed(number)
