"""What is kept of a rollout beside what it teaches: programs that passed, and some episodes for the page.

Nothing here can fail a round: what goes wrong is said in the log.
"""

import logging
from collections.abc import Mapping, Sequence

from services.trainer import transcripts
from services.trainer.context import Context
from services.trainer.ledger import Round
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement.episodes import Episode
from services.trainer.solutions import Solved
from services.trainer.suites import programs
from services.trainer.tasks.store import StoredTask

log = logging.getLogger(__name__)


def keep(
    context: Context, round_: Round, step: int, episodes: Sequence[Episode], tasks: Mapping[str, StoredTask]
) -> None:
    """Store what the episodes of iteration `step`, from 1, are worth keeping; again, it changes nothing.

    tasks: those that the round trains on, by their keys; nothing is kept of others.
    """
    if not context.distribution.is_first:
        return
    ledger, settings = context.first_books.ledger, section(context.recipe)
    try:
        if settings.keep_solutions and (found := solved(episodes, tasks)):
            kept = ledger.keep_solutions(round_.round_id, found)
            log.debug("iteration %d: %d programs passed, %d of them are kept", step, len(found), kept)
        if step == 1 or step % settings.eval_interval == 0 or step == settings.iterations:
            ledger.record_episodes(round_.round_id, step, transcripts.told(episodes, tasks))
    except Exception as exc:  # what is kept must not stop what is learned
        log.warning("iteration %d is not kept (%s: %s)", step, type(exc).__name__, exc)


def solved(episodes: Sequence[Episode], tasks: Mapping[str, StoredTask]) -> list[Solved]:
    """The last program of every episode that passed, with the task as it is asked without other agents."""
    return [
        Solved(stored.task_id, programs.question(stored.task), each.programs[-1])
        for each in episodes
        if each.solved and each.programs and (stored := tasks.get(each.task)) is not None
    ]
