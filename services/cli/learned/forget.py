"""`ratchet forget SOURCE|PATH`: say what would go, ask, and see it through; `ratchet forgotten` lists it."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.cli.asking import connection, modelprocess
from services.cli.asking.person import user
from services.cli.environment import Environment
from services.cli.learned import forget_words
from services.cli.learned.retraining import await_rounds
from services.cli.printing.inert import inert
from services.core.db import Database, Transaction
from services.core.errors import ForgetError
from services.core.models import Json
from services.trainer.forgetting import checking, course, steps
from services.trainer.forgetting.checking import Measure
from services.trainer.forgetting.course import Say
from services.trainer.forgetting.found import Found
from services.trainer.forgetting.steps import Forgetting
from services.trainer.forgetting.target import find
from services.trainer.forgetting.words import Policy, State

CONNECTIONS = 3  # one holds the lock, one works, one is to spare
NO, YES = "n", ("y", "yes")


@dataclass(frozen=True)
class Options:
    """What was asked for besides the target."""

    everywhere: bool = False
    dry_run: bool = False
    yes: bool = False
    wait: bool = False
    check: bool = True
    delete_adapters: bool = False
    reason: str = "by hand"


def run(environment: Environment, asked: str, options: Options, *, as_json: bool) -> bool:
    """Forget it, or go on with it; False when nothing was done since nobody said yes.

    Raises ForgetError for what cannot be forgotten, and by whom.
    """
    say: Say = _quiet if as_json else _say
    with connection.opened(environment, "ratchet forget", connections=CONNECTIONS) as database:
        with database.transaction() as tx:
            steps.require_owner(tx)
            before = course.unfinished(tx, find(tx, asked))
            looked = None if before else _look(environment, tx, asked, options)
        if looked is not None:
            if options.dry_run or not as_json:
                _show_found(looked, as_json=as_json)
            if options.dry_run:
                return True
            if not (options.yes or _agreed(looked)):
                return False
        elif options.dry_run:
            assert before is not None
            raise ForgetError(f"{before.words} is under way ({before.state}): without --dry-run it goes on")
        done: list[Forgetting] = []

        def measure(models: Sequence[Path | None], manifest: Json, texts: Sequence[str]) -> list[Json]:
            asked_for = checking.question(models, manifest, texts)
            return list(modelprocess.ask(environment, checking.CHILD, asked_for)["models"])

        def work() -> None:
            done.append(_through(environment, database, before or looked, options, measure, say))

        steps.exclusively(database, work)
        if options.wait and done[0].found["refuges"]:
            _await(database, environment, done[0], say)
        end = course.conclude(database, environment.settings, done[0], measure if options.check else None)
        others = _unfinished(database)
    print(json.dumps(end.as_json()) if as_json else "\n".join([*forget_words.outcome(end), *others]))
    return True


def undo(environment: Environment, asked: str, *, as_json: bool) -> None:
    """Lift the tombstones of a forgetting, by number or target."""
    lifted: list[tuple[Forgetting, int]] = []
    with connection.opened(environment, "ratchet forget", connections=CONNECTIONS) as database:
        with database.transaction() as tx:
            steps.require_owner(tx)
        steps.exclusively(database, lambda: lifted.append(course.undo(database, environment.settings, asked)))
    ((forgetting, files),) = lifted
    if as_json:
        print(json.dumps({**forgetting.as_json(), "files_read_again": files}))
        return
    print(
        f"{inert(forgetting.words)}: its tombstones are lifted. {files:,} files are read again at the next"
        " scan; what was erased stays so, and adapters are marked no more"
    )


def list_all(environment: Environment, *, as_json: bool) -> None:
    """Every forgetting, newest first, with its state and figures."""
    with connection.opened(environment, "ratchet forgotten") as database, database.transaction() as tx:
        rows = [row._asdict() for row in tx.all("forgettings", forgetting=None)]
    if as_json:
        print(json.dumps(rows, default=str))
        return
    print("\n".join(forget_words.listed(rows)) or "nothing was forgotten")


def _look(environment: Environment, tx: Transaction, asked: str, options: Options) -> Found:
    policy = Policy(environment.settings.forget_policy)
    return course.look(tx, asked, policy, everywhere=options.everywhere)


def _unfinished(database: Database) -> list[str]:
    """Others that were cut short, whose texts may still be there."""
    with database.transaction() as tx:
        rows = tx.all("forgettings", forgetting=None)
        left = [steps.read(tx, row.id) for row in rows if row.state != State.DONE]
    return [
        inert(f"{each.words} is not finished ({each.state}): `ratchet forget {each.target.shown}` goes on")
        for each in left
    ]


def _await(database: Database, environment: Environment, forgetting: Forgetting, say: Say) -> None:
    try:
        await_rounds(database, sorted(forgetting.found["refuges"]), say)
    except KeyboardInterrupt:
        kept = course.passages_file(environment.settings, forgetting)
        where = f"; until then {kept} keeps the passages that it is measured by" if kept else ""
        say(inert(f"`ratchet forget {forgetting.target.shown}` goes on from here{where}"))
        raise


def _through(
    environment: Environment, database: Database, begun: Forgetting | Found | None, options: Options,
    measure: Measure, say: Say,
) -> Forgetting:  # fmt: skip
    """From where it stands to the last text."""
    assert begun is not None
    if isinstance(begun, Found):
        kept = {"delete_adapters": options.delete_adapters}
        forgetting = course.begin(database, begun, user(), options.reason, kept)
        say(f"{inert(forgetting.words)}: nothing of it comes in or is trained on any more")
    else:
        forgetting = begun
        say(f"going on with {inert(forgetting.words)}, begun before and {forgetting.state} so far")
    asked = measure if options.check else None
    return course.carry_on(database, environment.settings, forgetting, asked, lambda line: say(inert(line)))


def _show_found(looked: Found, *, as_json: bool) -> None:
    print(json.dumps(looked.as_json()) if as_json else "\n".join(forget_words.preview(looked)))


def _agreed(looked: Found) -> bool:
    """What a person at a terminal says. Raises ForgetError where there is none to ask."""
    if not sys.stdin.isatty():
        raise ForgetError(f"forgetting {looked.target.shown} cannot be taken back: say --yes, or --dry-run")
    sys.stderr.write(f"Forget {inert(looked.target.shown)}? Its texts cannot be brought back. [y/N] ")
    sys.stderr.flush()
    return (sys.stdin.readline().strip().lower() or NO) in YES


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def _quiet(_line: str) -> None:
    """JSON is all that is printed."""
