"""Write the hashed lock files from the `.in` files: `make lock` (needs uv, installs nothing).

One resolution over everything, then one file per purpose cut from it, so that no two files
disagree on a version. Every file is complete, to be installed with `--no-deps`. torch
is special: the registry's Linux wheel needs CUDA packages (2 GB), the CPU wheel does not and is
called 2.13.0+cpu. So torch-cpu.txt and torch-cuda.txt are two ways to have it, and trainer.txt
holds what both share.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PYTHON_VERSION = "3.11"
# sha256 of torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl, which PyPI does not list.
TORCH_CPU_WHEEL = "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
CUDA_ONLY = re.compile(r"^(nvidia-|cuda-|triton)")
TORCH_VERSION = re.compile(r"^torch==[0-9.]+")
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==")


def resolve(inputs: list[str], constraints: Path | None = None) -> dict[str, str]:
    """Package name → its lines in the lock (pin and hashes)."""
    command = ["uv", "pip", "compile", "--quiet", "--python-version", PYTHON_VERSION]
    command += ["--generate-hashes", "--no-header", "--no-annotate"]
    command += ["--constraint", str(constraints)] if constraints else []
    done = subprocess.run(
        [*command, *(str(HERE / name) for name in inputs)], check=True, capture_output=True, text=True
    )
    blocks: dict[str, str] = {}
    name = ""
    for line in done.stdout.splitlines():
        if found := REQUIREMENT.match(line):
            name = found[1]
            blocks[name] = ""
        blocks[name] += line + "\n"
    return blocks


def write(name: str, blocks: dict[str, str]) -> None:
    header = "# Written by `make lock` from the .in files; do not edit.\n"
    (HERE / name).write_text(header + "".join(blocks[key] for key in sorted(blocks)), encoding="utf-8")
    sys.stdout.write(f"{name}: {len(blocks)} packages\n")


def main() -> None:
    everything = resolve(["services.in", "local.in", "trainer.in", "dev.in"])
    constraints = HERE / ".constraints.txt"
    pins = [re.split(r"[ ;\\]", block)[0] for block in everything.values()]
    constraints.write_text("\n".join(pins), encoding="utf-8")
    try:
        services, local, trainer, dev = (
            resolve([name], constraints) for name in ("services.in", "local.in", "trainer.in", "dev.in")
        )
    finally:
        constraints.unlink()
    cuda_only = [name for name in trainer if CUDA_ONLY.match(name) or name == "torch"]
    cuda = {name: trainer.pop(name) for name in cuda_only}
    version = TORCH_VERSION.match(cuda["torch"])[0]  # type: ignore[index]
    cpu = {"torch": f"{version}+cpu \\\n    --hash=sha256:{TORCH_CPU_WHEEL}\n"}
    write("services.txt", services)
    write("local.txt", local)
    write("torch-cpu.txt", cpu)
    write("torch-cuda.txt", cuda)
    write("trainer.txt", trainer)
    write("dev.txt", dev)


if __name__ == "__main__":
    main()
