"""`ratchet serve`: the champion behind OpenAI's API on this machine, always the one that `current` names."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from services.cli.asking import modelprocess
from services.cli.environment import Environment
from services.core import log
from services.core.errors import ConfigurationError, StackError
from services.serving import adapters, fits
from services.serving.names import asked_as
from services.trainer import publish
from services.trainer.parity import record
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe

CHILD = "services.trainer.server"
ANY_RANK = 10_000  # the local server takes what fits into memory
STOP_SECONDS = 5.0


def run(
    environment: Environment, name: str | None, *, host: str | None, port: int | None, as_json: bool = False
) -> None:
    """Serve until SIGINT or SIGTERM; first say where, and what answers.

    Raises ConfigurationError for a recipe that trains whole models or a port in use, StackError when the
    process with the model ends.
    """
    from services.serving.__main__ import listen, server  # starlette and uvicorn: for this command alone

    settings = environment.settings
    recipe = _recipe(environment, name)
    log.setup("serve", settings.log_level, settings.secrets())
    listener = listen(host or settings.serve_host, settings.serve_port if port is None else port)
    address = "http://{}:{}".format(*listener.getsockname()[:2])
    says = preflight(environment, recipe)
    if as_json:
        told = {"recipe": recipe.name, "url": f"{address}/v1", "health": f"{address}/health", "says": says}
        print(json.dumps(told), flush=True)
    else:
        print(f"serving {recipe.name} at {address}/v1 until Ctrl-C; {address}/health says what answers")
        print(says, flush=True)
    with model_process(environment, recipe) as (child, backend_url):
        front = server(
            settings.model_copy(update={"serve_max_lora_rank": ANY_RANK}), recipe.name, backend_url
        )

        def end_with_child() -> None:
            child.wait()
            front.should_exit = True

        threading.Thread(target=end_with_child, daemon=True).start()
        front.run(sockets=[listener])
        if child.poll() not in (None, 0, -15):
            raise StackError(f"{CHILD} ended with status {child.returncode}: its message is above")


def show_command(environment: Environment, name: str | None, *, as_json: bool) -> None:
    """Print how vLLM is started for the recipe."""
    line = command(environment, name)
    print(json.dumps({"command": line}) if as_json else line)


def command(environment: Environment, name: str | None) -> str:
    """How vLLM is started for the recipe, by hand. Raises ConfigurationError where it cannot be."""
    recipe = _recipe(environment, name)
    rank = fits.rank_for(2 * recipe.lora_r if recipe.init_lora_weights == "pissa" else recipe.lora_r)
    if rank is None or recipe.use_dora:
        what = "DoRA" if recipe.use_dora else f"lora_r {recipe.lora_r}"
        raise ConfigurationError(
            f"vLLM does not take {what}: serve it with `ratchet serve`, or merge it with `ratchet merge`"
        )
    roles = 1 if recipe.reinforcement is None else len(recipe.reinforcement.roles)
    loras = 2 * roles  # of the champion, and of the one before while answers are written with it
    model = recipe.base_model
    if model.startswith("wheel:"):
        model = str(
            environment.settings.cache_dir / "models" / model.rpartition("/")[2].removesuffix(".gguf")
        )
    revision = f" --revision {recipe.revision}" if recipe.revision else ""
    return (
        f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve {model}{revision} --served-model-name"
        f" {adapters.BASE} --enable-lora --max-lora-rank {rank} --max-loras {loras}"
        " --host 127.0.0.1 --port 8001"
    )


def preflight(environment: Environment, recipe: Recipe) -> str:
    """What will answer, whether its parity is known, and whether vLLM would take it."""
    track_dir = environment.settings.adapters_dir / recipe.name
    name = adapters.current(track_dir)
    if name is None:
        return f"{recipe.name} has no champion: the base model answers until there is one"
    roles = adapters.roles(track_dir, name)
    said = [f"{recipe.name}@{name}: {record.said(record.of_release(track_dir, name, roles))}"]
    complaint = adapters.why_not(track_dir / name, {}, environment.settings.serve_max_lora_rank)
    said.append("vLLM takes it" if complaint is None else f"vLLM would not take it: {complaint}")
    if roles:
        names = ", then ".join(asked_as(recipe.name, role) for role in roles)
        said.append(f"it is a team: ask {names}")
    return "; ".join(said)


def _recipe(environment: Environment, name: str | None) -> Recipe:
    """The champion's, which knows the base model's commit, or the one that is named."""
    settings = environment.settings
    recipe = recipe_files.load(name or settings.recipe, settings.recipe_overrides)
    current = settings.adapters_dir / recipe.name / publish.CURRENT
    if (current / publish.MANIFEST).is_file():
        manifest = publish.verify(current.resolve())
        recipe = Recipe.model_validate(manifest["recipe"])
        revision = recipe.revision or manifest.get("base_revision")
        recipe = recipe.model_copy(update={"revision": revision})
    if recipe.method == "full":
        raise ConfigurationError(
            f"{recipe.name} trains whole models (method full), and only adapters are exchanged in a running"
            f" server: start one with {current} as its model, as `vllm serve {current}`"
        )
    return recipe


@contextmanager
def model_process(environment: Environment, recipe: Recipe) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The process with the model, and the address on which this machine alone reaches it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        child = subprocess.Popen(
            [sys.executable, "-m", CHILD, str(listener.fileno())],
            env={
                **modelprocess.variables(environment),
                "RATCHET_PARENT_PID": str(os.getpid()),
                "TOKENIZERS_PARALLELISM": "false",
            },
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            text=True,
        )
    try:
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(recipe.model_dump(mode="json")))
            child.stdin.close()
        except BrokenPipeError:
            pass  # it ended before it had read everything, and said why
        yield child, url
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
