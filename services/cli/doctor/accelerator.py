"""GPU, driver and PyTorch: do they know one another? Torch is asked in a process of its own."""

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.cli.doctor.finding import Finding, error, ok, skipped, warning
from services.cli.environment import Environment
from services.core.errors import ConfigurationError
from services.core.models import Json
from services.trainer.recipes import files as recipe_files

TOOL_SECONDS, TORCH_SECONDS = 3.0, 3.9  # patience
MIB = 2**20
DRIVERS = {"13": 580, "12": 525, "11": 450}  # CUDA's major version → driver (CUDA Compatibility, table 1)
QUERY = "name,memory.total,memory.used,driver_version"
ASK_TORCH = (
    "import json, torch; cuda = torch.cuda; "
    "print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda, "
    "'devices': cuda.device_count() if cuda.is_available() else 0}))"
)
REINSTALL = "`rm .venv/.ratchet-runtime; make setup` installs it"


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver's tool has it."""

    name: str
    memory_bytes: int
    used_bytes: int
    driver: str


def graphics(environment: Environment) -> Iterator[Finding]:
    """The GPUs, and whether the recipe can do without one."""
    gpus = find_gpus()
    yield from map(_gpu, gpus or [])
    if gpus is None:
        yield error(
            "gpu",
            "nvidia-smi is here and fails: the driver is not loaded, or not for this kernel",
            "install NVIDIA's driver anew, or restart after an update of it",
        )
    elif not gpus:
        yield _without_gpu(environment)


def find_gpus() -> list[Gpu] | None:
    """The GPUs of this machine; empty without NVIDIA's tool, None when it fails."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse(done.stdout)


def parse(text: str) -> list[Gpu]:
    """From the tool's lines; sizes are in MiB. A line with a figure that is not known is left out."""
    found = []
    for line in text.splitlines():
        name, _, rest = line.partition(",")
        figures = [figure.strip() for figure in rest.split(",")]
        if len(figures) == 3 and figures[0].isdigit() and figures[1].isdigit():
            found.append(Gpu(name.strip(), int(figures[0]) * MIB, int(figures[1]) * MIB, figures[2]))
    return found


def _gpu(gpu: Gpu) -> Finding:
    said = f"{gpu.name}, {gpu.memory_bytes / 1e9:.0f} GB, driver {gpu.driver}"
    if gpu.used_bytes > gpu.memory_bytes / 10:
        cure = "end what uses it, or choose others by CUDA_VISIBLE_DEVICES: a round plans for all of it"
        return warning("gpu", f"{said}; {gpu.used_bytes / 1e9:.1f} GB of it are in use", cure)
    return ok("gpu", said)


def _without_gpu(environment: Environment) -> Finding:
    """None is well for a recipe whose model comes in a wheel: it is small."""
    try:
        recipe = recipe_files.load(environment.settings.recipe, environment.settings.recipe_overrides)
    except ConfigurationError:  # the check of the recipe says so
        return skipped("gpu", "no NVIDIA GPU here")
    if recipe.base_model.startswith("wheel:"):
        return ok("gpu", f"no NVIDIA GPU here: {recipe.name} trains on the processor, too")
    return warning(
        "gpu",
        f"no NVIDIA GPU here, and {recipe.name} on {recipe.base_model} is slow or too large without one",
        f"`ratchet plan {recipe.name}` says what it needs; RECIPE=demo trains a small model on the processor",
    )


def torch(_environment: Environment) -> Iterable[Finding]:
    """PyTorch, and whether it can use the GPUs there are."""
    return [_torch(find_gpus() or [])]


def _torch(gpus: list[Gpu]) -> Finding:
    if importlib.util.find_spec("torch") is None:
        return error("torch", "PyTorch is not installed here: nothing can be trained", REINSTALL)
    try:
        done = subprocess.run(
            [sys.executable, "-c", ASK_TORCH],
            capture_output=True,
            text=True,
            timeout=TORCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return skipped("torch", f"PyTorch takes longer than {TORCH_SECONDS:g} s to load: not looked at")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        return error("torch", f"PyTorch cannot be loaded: {last}", REINSTALL)
    return judge(json.loads(done.stdout.splitlines()[-1]), gpus)


def judge(found: Json, gpus: list[Gpu]) -> Finding:
    """Whether this PyTorch, as it answered, can use these GPUs, and if not, why."""
    cuda = found["cuda"]
    said = f"PyTorch {found['version']}" + (f" for CUDA {cuda}" if cuda else " for processors")
    if not gpus:
        return ok("torch", said)
    if found["devices"]:
        return ok("torch", f"{said}, sees {found['devices']} of {len(gpus)} GPUs")
    if cuda is None:
        return error("torch", f"{said}: it cannot use the GPU", REINSTALL)
    needed = DRIVERS.get(cuda.partition(".")[0])
    major = gpus[0].driver.partition(".")[0]
    if needed is not None and major.isdigit() and int(major) < needed:
        return error(
            "torch",
            f"{said} needs NVIDIA's driver {needed} or newer, and this is {gpus[0].driver}",
            f"install driver {needed} or newer",
        )
    return error(
        "torch",
        f"{said} sees no GPU, though the driver does",
        "is CUDA_VISIBLE_DEVICES empty, or are /dev/nvidia* not for this user?",
    )
