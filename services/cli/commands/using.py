"""Use an adapter: write with it, serve it, merge it."""

from typing import Annotated

import typer

from services.cli.commands import complete
from services.cli.commands.options import SUBJECT_HELP, AsJson, Recipe

app = typer.Typer(rich_markup_mode=None)


@app.command()
def generate(
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT|-", help="What to go on from; - is standard input.")
    ] = None,
    adapter: Annotated[
        str,
        typer.Option("--adapter", metavar="WHO", help=SUBJECT_HELP, autocompletion=complete.subjects),
    ] = "champion",
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
    """Write on from a prompt with the champion.

    Or with the base model, or any adapter.
    """
    from services.cli import environment
    from services.cli.using.generate import Asked, run

    request = {
        "max_new_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p, "n": n, "seed": seed,
        "stop": list(stop or ()),
    }  # fmt: skip
    asked = Asked(prompt, adapter, prefix, suffix, chat, request)
    run(environment.read(), asked, as_json=as_json)


@app.command()
def serve(
    recipe: Recipe = None,
    host: Annotated[str | None, typer.Option("--host", help="Instead of SERVE_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Instead of SERVE_PORT; 0: a free one.")
    ] = None,
    vllm: Annotated[
        bool, typer.Option("--vllm", help="Print how vLLM is started for it instead, and end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer OpenAI's requests with the champion.

    And with the next one as soon as it is promoted. With --json one object first, that says where; what
    happens later is in the log on standard error.
    """
    from services.cli import environment
    from services.cli.using.serve import run, show_command

    if vllm:
        show_command(environment.read(), recipe, as_json=as_json)
    else:
        run(environment.read(), recipe, host=host, port=port, as_json=as_json)


@app.command()
def merge(
    adapter: Annotated[
        str,
        typer.Argument(
            metavar="ADAPTER",
            help="champion, TRACK[/round-0001], round-0001, or a folder.",
            autocompletion=complete.subjects,
        ),
    ],
    output: Annotated[str, typer.Argument(metavar="OUTPUT_DIR", help="A folder that is not there yet.")],
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not measure what merging changed: needs little memory.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a merged model that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an adapter into the full weights of its base.

    Says what quantisation and merging cost.
    """
    from pathlib import Path

    from services.cli import environment
    from services.cli.using.merge import run

    run(environment.read(), adapter, Path(output), check=not no_check, force=force, as_json=as_json)


@app.command()
def parity(
    adapter: Annotated[
        str,
        typer.Argument(
            metavar="ADAPTER",
            help="champion, TRACK, round-0001, or a published folder.",
            autocompletion=complete.subjects,
        ),
    ] = "champion",
    served: Annotated[
        str | None,
        typer.Option("--served", metavar="URL", help="Ask this running server, not one started for it."),
    ] = None,
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, max=1024, help="Tokens written after a prompt.")
    ] = 48,
    held_out: Annotated[
        int,
        typer.Option("--held-out", min=0, max=100, help="Held-out files asked, beside fixed texts."),
    ] = 8,
    as_json: AsJson = False,
) -> None:
    """Measure whether an adapter answers alike wherever it runs.

    As trained, on the full base, merged, and served.
    """
    from services.cli import environment
    from services.cli.using.parity import run

    run(environment.read(), adapter, served=served, tokens=tokens, held_out=held_out, as_json=as_json)
