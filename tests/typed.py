"""Whether a command can be typed: subcommand, options, files, services; said without running it."""

import importlib.util
import itertools
import re
from collections.abc import Callable
from typing import Any

import yaml
from typer.main import get_command

from services.cli.main import app
from services.core.settings import NAMES, PROJECT, Settings
from services.trainer.recipes import files as recipe_files

RATCHET = get_command(app)
MAKEFILE = (PROJECT / "Makefile").read_text(encoding="utf-8")
EXAMPLE = (PROJECT / ".env.example").read_text(encoding="utf-8")
COMPOSE = [
    yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (PROJECT / "docker-compose.yml", *sorted((PROJECT / "deploy").glob("*.yml")))
]
SERVICES = {name: service or {} for file in COMPOSE for name, service in (file.get("services") or {}).items()}
PROFILES = {
    profile
    for file in COMPOSE
    for service in (file.get("services") or {}).values()
    for profile in (service or {}).get("profiles", ())
}
FOREIGN = {  # of the system or of others: that they are there is theirs to say
    "alertmanager", "amtool", "cat", "cd", "cp", "curl", "echo", "export", "git", "grep", "head", "helm",
    "jq", "less", "ls", "mkdir", "nvidia-smi", "openssl", "promtool", "psql", "ray", "rm", "sudo", "tail",
    "tar", "tensorboard", "vllm", "wandb",
}  # fmt: skip
OTHERS_VARIABLES = (
    "COMPOSE_", "CUDA_", "GLOO_", "HF_", "LLAMA_CPP_ROOT", "MALLOC_", "NCCL_", "PYTHON", "VLLM_", "WANDB_",
)  # fmt: skip
MADE_BY_READERS = (
    "adapters", "answers", "benchmarks", "corpus", "llama.cpp", "mine", "models", "report", "samples",
)  # fmt: skip


def check(words: tuple[str, ...]) -> None:
    """Fails unless the words can be run: as far as can be said without running them."""
    if not words:
        return  # assignments alone
    program, *arguments = words
    known = PROGRAMS.get(program)
    assert known or program in FOREIGN, f"{program} is no program that this test knows"
    if known:
        known(arguments)


def check_ratchet(arguments: list[str]) -> None:
    """The command, its arguments and options, each by its type; nothing is called."""
    command, path, words = RATCHET, "ratchet", list(arguments)
    while hasattr(command, "commands"):
        while words and words[0].startswith("-"):
            assert words.pop(0) in options_of(command), f"{path}: {arguments}"
        assert words, f"{path}: which command?"
        name = words.pop(0)
        assert name in command.commands, f"{path} has no command {name!r}"
        command, path = command.commands[name], f"{path} {name}"
    if {"--help", "-h"} & set(words):
        return
    parsed = command.make_context(path, words).params
    if path.split()[1] in ("plan", "recipe", "samples", "lr-find", "verdict", "gate"):
        for named in filter(None, (parsed.get("recipe"), parsed.get("name"))):
            assert _is_recipe(named), f"there is no recipe {named}"
    if path.startswith("ratchet experiment ") and parsed.get("name"):
        assert _is_experiment(parsed["name"]), f"there is no experiment {parsed['name']}"


def options_of(command: Any) -> set[str]:
    """Every name of every option of a command, and --help."""
    parameters = [one for one in command.params if one.param_type_name == "option"]
    return {name for one in parameters for name in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}


def check_make(arguments: list[str]) -> None:
    for word in arguments:
        if "=" not in word:
            assert re.search(rf"^{word}:", MAKEFILE, re.MULTILINE), f"make {word}: no such target"


def check_compose(arguments: list[str]) -> None:
    """docker-compose, or docker compose: services, profiles and files; what is run inside is checked too."""
    rest = _checked_globals(list(arguments))
    assert rest, "which command of compose?"
    command, words = rest[0], rest[1:]
    assert command in {
        "up",
        "down",
        "ps",
        "logs",
        "exec",
        "run",
        "build",
        "config",
        "pull",
        "restart",
        "stop",
    }
    takes_value = {"-e", "-u", "--user", "--scale", "--entrypoint", "--tail", "-w"}
    while words:
        word = words.pop(0)
        if word == "--scale":
            _is_service(words.pop(0).partition("=")[0])
        elif word in takes_value:
            words.pop(0)
        elif not word.startswith("-"):
            _is_service(word)
            if command in ("exec", "run"):
                if words and words[0] != "sh":
                    check(tuple(words))
                return


def _checked_globals(words: list[str]) -> list[str]:
    while words and words[0].startswith("-"):
        option, value = words[:2]
        if option == "--profile":
            assert value in PROFILES, f"no profile {value}"
        elif option in ("-f", "--file"):
            assert (PROJECT / value).is_file(), f"no file {value}"
        words = words[2:]
    return words


def _is_service(name: str) -> None:
    assert name in SERVICES, f"no service {name} in Compose"


def check_docker(arguments: list[str]) -> None:
    if arguments[:1] == ["compose"]:
        check_compose(arguments[1:])
    elif arguments[:1] == ["build"]:
        check_files(arguments)


def check_files(arguments: list[str]) -> None:
    """Files and folders that an option names."""
    for option, value in itertools.pairwise(arguments):
        if option in ("-f", "--file", "-k", "-r", "--requirement"):
            check_path(value)


def check_python(arguments: list[str]) -> None:
    """A module there is, or a file there is."""
    if "-m" in arguments:
        module = arguments[arguments.index("-m") + 1]
        if module.split(".")[0] in ("services", "deploy"):
            assert importlib.util.find_spec(module), f"no module {module}"
    elif arguments and not arguments[0].startswith("-"):
        check_path(arguments[0])


def check_torchrun(arguments: list[str]) -> None:
    check_python(arguments[arguments.index("-m") :])


def check_curl(arguments: list[str]) -> None:
    """An address of the metrics service is a route of it."""
    from services.metrics.app import create_app

    for address in (word for word in arguments if "localhost:8090" in word or "127.0.0.1:8090" in word):
        metrics = create_app(
            Settings.model_validate({"database_url": "postgresql://nobody:nothing@localhost/none"})
        )
        path = "/" + re.sub(r"^(https?://)?[^/]*/?", "", address)
        method = "POST" if {"-d", "--data", "--json", "-X"} & set(arguments) else "GET"
        metrics.url_map.bind("localhost").match(path.partition("?")[0], method=method)


def check_script(arguments: list[str]) -> None:
    """A script of the project: that it is there is all that is said of it."""


def check_path(text: str) -> None:
    """A file of the project, unless it is one that readers make."""
    if not text.startswith(("/", "~", ".", "$")) and not text.startswith(MADE_BY_READERS):
        assert (PROJECT / text).exists(), f"no file {text}"


def check_variable(assignment: str) -> None:
    name = assignment.partition("=")[0]
    known = name in NAMES or re.search(rf"^#?{name}=", EXAMPLE, re.MULTILINE)
    assert known or name.startswith(OTHERS_VARIABLES), f"{name} is no setting"
    if name == "RECIPE":
        assert _is_recipe(assignment.partition("=")[2])


def _is_recipe(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) or name in recipe_files.available() or name == "RECIPE"


def _is_experiment(name: str) -> bool:
    return name.endswith(".yaml") or (PROJECT / "recipes" / "experiments" / f"{name}.yaml").is_file()


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "ratchet": check_ratchet,
    ".venv/bin/ratchet": check_ratchet,
    "make": check_make,
    "docker-compose": check_compose,
    "docker": check_docker,
    "python": check_python,
    "python3": check_python,
    ".venv/bin/python": check_python,
    "torchrun": check_torchrun,
    "pip": check_files,
    "kubectl": check_files,
    "curl": check_curl,
}
