"""What a process with a model is spared while it loads its libraries, and that it has them whole."""

import subprocess
import sys

import pytest

from services.core.settings import PROJECT
from services.trainer import libraries

LOADED = """
import gc
import sys
from services.trainer import libraries
libraries.load()
import torch
print("torch._inductor.compile_fx" in sys.modules, gc.isenabled(), torch.compile.__module__)
from bitsandbytes.functional import dequantize_4bit, quantize_4bit
weight = torch.linspace(-1, 1, 128).reshape(2, 64)
print(float((dequantize_4bit(*quantize_4bit(weight, quant_type="nf4")) - weight).abs().max()) < 0.2)
"""


def test_the_compiler_is_not_loaded_and_everything_is_as_it_was() -> None:
    """Collections, torch.compile, and bitsandbytes, which computes."""
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert loaded.stdout.split() == ["False", "True", "torch", "True"], loaded.stderr


@pytest.mark.parametrize("decorated", [True, False])
def test_a_function_is_compiled_at_its_first_call_and_once(decorated: bool) -> None:
    """With the options that were given."""
    asked = []

    def compile_now(function, **options):
        asked.append(options)
        return lambda number: function(number) + 1

    later = libraries._compiled_at_first_call(compile_now)
    twice = later(dynamic=False)(lambda n: 2 * n) if decorated else later(lambda n: 2 * n, dynamic=False)
    assert asked == []
    assert [twice(1), twice(2)] == [3, 5]
    assert asked == [{"dynamic": False}]
