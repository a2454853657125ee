"""GPU tests run only where there is one: `python -m pytest tests/gpu`."""

import pytest

from tests.integration.trainer.conftest import store, tiny_model, trainer

__all__ = ["store", "tiny_model", "trainer"]


@pytest.fixture(autouse=True)
def gpu() -> None:
    """Skips, and says why, where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
