"""How fast a round trains, beside its peers and beside what the hardware can do.

    .venv/bin/python bench/train.py --cpu --quick     SmolLM2-135M with the demo recipe, at most ten minutes
    .venv/bin/python bench/train.py --gpu             true shapes with random weights, on an NVIDIA GPU

Ends with one line of JSON.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure training.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--cpu", action="store_true", help="the demo recipe on this machine's cores")
    where.add_argument("--gpu", action="store_true", help="the shapes of the recipes on a GPU")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: at most ten minutes")
    options = parser.parse_args()
    if options.gpu:
        from bench import train_gpu

        figures = train_gpu.measure(quick=options.quick)
    else:
        from bench import train_cpu

        figures = train_cpu.measure(quick=options.quick)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
