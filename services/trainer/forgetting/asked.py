"""Forgetting for who asks the trainer: all that needs no model, where the trainer's login may do it."""

import shlex

from services.core.db import Database
from services.core.errors import ForgetError
from services.core.settings import Settings
from services.trainer.forgetting import course, steps
from services.trainer.forgetting.steps import Forgetting
from services.trainer.forgetting.target import find
from services.trainer.forgetting.words import Policy, State


def carry_out(database: Database, settings: Settings, asked: str, actor: str, reason: str) -> str:
    """Forget it from the first step to the last, but measure no model; what came of it.

    Safe to call again with the same reason after it was cut short. Raises ForgetError for what is not known,
    is forgotten already, or may not be forgotten by this login: then with the command to type.
    """
    with database.transaction() as tx:
        target = find(tx, asked)
        command = f"`ratchet forget {shlex.quote(target.shown)}`"
        login = tx.one("may_forget")
        if not login.allowed:
            raise ForgetError(
                f"this trainer logs in as {login.role}, and only the owner of the tables may take texts out"
                f" of the ledger: type {command} where `ratchet migrate` runs (docs/how-to/forget.md);"
                " it shows what would go before anything does"
            )
        before = steps.standing(tx, target)
    if before is not None and before.state is State.DONE and (before.actor, before.reason) == (actor, reason):
        return _told(before, command)
    done: list[Forgetting] = []

    def work() -> None:
        with database.transaction() as tx:
            begun = course.unfinished(tx, target)
            looked = course.look(tx, asked, Policy(settings.forget_policy), everywhere=False)
        begun = begun or course.begin(database, looked, actor, reason, {"delete_adapters": False})
        forgotten = course.carry_on(database, settings, begun, None, lambda _line: None)
        done.append(course.conclude(database, settings, forgotten, None))

    steps.exclusively(database, work)
    return _told(done[0], command)


def _told(forgetting: Forgetting, command: str) -> str:
    contents, adapters = forgetting.found["contents"], len(forgetting.found["adapters"])
    return (
        f"{forgetting.words} is done: {contents:,} texts are gone, {adapters} adapters that had learned them"
        f" are marked; what the models still know was not measured, as {command} does"
    )
