"""The trainer daemon: polls, starts a round when there is enough new code, watches it, never imports torch.

One trainer a track: the daemon holds a lease and hands its fencing token to the child, which can commit
only while no newer one exists.
"""

import logging
import os
import shutil
import socket
import time
from dataclasses import dataclass, replace
from typing import Any

from services.core import log as logs
from services.core.db import Database, as_json
from services.core.errors import DatabaseUnavailableError, LeaseLostError, PublishError
from services.core.models import HEARTBEAT_INTERVAL, RequestKind, Service, ServiceState
from services.core.process import StopSignal, die_with_parent
from services.core.room import room
from services.core.settings import Settings, from_environment
from services.trainer import backlog, heartbeat, machines, publish
from services.trainer.canary_process import Canary
from services.trainer.child import Child
from services.trainer.judge import backoff
from services.trainer.ledger import Lease, Ledger
from services.trainer.node import Node
from services.trainer.recipes import files as recipe_files
from services.trainer.recipes.recipe import Recipe
from services.trainer.requests import Desk, Request
from services.trainer.webhooks.sender import Sender

log = logging.getLogger(__name__)
TICK = 0.5  # seconds between two looks at the child
CLOSED_FOR = 60.0  # seconds after which a child whose round is closed is not just tidying up


@dataclass(frozen=True)
class Status:
    """What the daemon's heartbeat says."""

    state: ServiceState
    message: str | None = None
    new_contents: int = 0
    paused: bool = False  # no new round begins


class Daemon:
    """Holds the lease, starts children, judges them. One call of `tick` never blocks for long."""

    def __init__(self, settings: Settings, recipe_: Recipe, database: Database) -> None:
        self._settings = settings
        self._recipe = recipe_
        self._machines = machines.for_recipe(settings, recipe_)
        self._database = database
        self._ledger = Ledger(database, recipe_.name)
        self._backlog = backlog.of(settings, recipe_, database, self._ledger)
        self._instance = f"{socket.gethostname()}:{os.getpid()}"
        self._lease: Lease | None = None
        self._child: Child | None = None
        self._canary = Canary(settings, self._ledger, recipe_.name)
        self._desk = Desk(settings, database, recipe_.name)
        self._asked: Request | None = None  # for a round that has not begun yet
        self._failures = 0  # children in a row that did not close their round
        self._next_poll = 0.0  # monotonic seconds
        self._next_beat = 0.0
        self._status = Status(ServiceState.IDLE, "starting")
        self._folders = (
            settings.adapters_dir,
            settings.checkpoints_dir,
            settings.logs_dir,
            settings.cache_dir,
        )

    def run(self, stop: StopSignal) -> None:
        while not stop:
            try:
                self.tick(time.monotonic())
            except DatabaseUnavailableError as exc:
                if self._status.message != str(exc):
                    log.warning("%s; trying again", exc)
                self._status = replace(self._status, message=str(exc))
                stop.wait(2.0)
            stop.wait(TICK)
        self._leave()

    def tick(self, now: float) -> None:
        """Look at the child or for work, and tell the database."""
        if self._child is not None:
            self._judge(self._child, now)
        if (found := self._canary.look(self._lease)) is not None:
            self._say(ServiceState.IDLE, found)
        if now >= self._next_beat:
            self._keep_lease(now)
            self._follow()
            self._beat()
            self._next_beat = now + HEARTBEAT_INTERVAL
        if self._lease is not None:
            self._heed(now)
        waits = self._child is None and not self._canary.runs
        if self._lease is not None and waits and now >= self._next_poll:
            if self._canary.start():
                self._say(ServiceState.EVALUATING, "trying what was published")
            else:
                self._poll(now)
            self._beat()

    # the lease

    def _keep_lease(self, now: float) -> None:
        if self._lease is not None:
            try:
                self._ledger.renew(self._lease)
            except LeaseLostError as exc:
                log.error("%s: stopping this round", exc)
                if self._child is not None:
                    self._child.kill()
                self._canary.stop()
                self._child = self._lease = None
        if self._lease is None:
            self._lease = self._ledger.take(self._recipe, self._instance)
            if self._lease is None:
                self._say(ServiceState.STANDBY, f"another trainer has the track {self._recipe.name}")
            else:
                log.info("track %s taken, token %d", self._recipe.name, self._lease.token)
                self._settle()
                self._say(ServiceState.IDLE, None)
                self._next_poll = now

    def _settle(self) -> None:
        """What a crash may have left: `current` behind the ledger, temporaries, unrecorded folders."""
        champion, opened = self._ledger.champion(), self._ledger.open_round()
        folder = self._settings.adapters_dir / self._recipe.name
        for kept in (self._settings.checkpoints_dir / self._recipe.name).glob("round-*"):
            if opened is None or kept.name != f"round-{opened.number:04}":  # nobody takes it up again
                shutil.rmtree(kept, ignore_errors=True)
        try:
            publish.settle(
                folder, None if champion is None else champion.directory, self._ledger.directories()
            )
        except PublishError as exc:
            log.error("%s", exc)

    def _follow(self) -> None:
        """What was moved by hand: `current` goes along, and a round that was closed by it ends."""
        if self._lease is None:
            return
        try:
            self._ledger.champions(self._settings.adapters_dir / self._recipe.name).follow()
        except PublishError as exc:
            log.error("%s", exc)
        beat = None if self._child is None else self._child.watched.beat
        if beat is None or beat.round_id is None or self._ledger.closed_for(beat.round_id) < CLOSED_FOR:
            return
        assert self._child is not None
        log.info("round %s was closed while it ran: stopping it", beat.round)
        self._child.stop()
        if beat.round is not None:  # it saved once more; what nobody takes up may hold what was forgotten
            shutil.rmtree(self._child.folder / f"round-{beat.round:04}", ignore_errors=True)
        self._child = None
        self._say(ServiceState.IDLE, f"round {beat.round} was closed while it ran")

    # what people ask

    def _heed(self, now: float) -> None:
        """Carry out what was asked of the track. A round that was asked for is answered when it has begun."""
        if self._asked is not None and self._child is None:
            why = self._status.message or "it ended at once"
            self._desk.failed(self._asked, f"no round has begun: {why}")
            self._asked = None
        for request in self._desk.waiting():
            if request.kind is RequestKind.TRAIN:
                if self._asked is None:
                    self._train_now(request)
            elif self._desk.carry_out(request):
                self._status = replace(self._status, paused=self._desk.pause() is not None)
                self._next_poll = min(self._next_poll, now)

    def _train_now(self, request: Request) -> None:
        opened, pause = self._ledger.open_round(), self._desk.pause()
        if self._child is not None:
            round_ = "a round" if opened is None else f"round {opened.number}"
            self._desk.done(request, f"{round_} is under way already")
        elif self._canary.runs:
            return  # it is asked again in half a second
        elif opened is not None:
            self._start(resuming=True)
            self._desk.done(request, f"round {opened.number} is taken up again")
        elif pause is not None:
            self._desk.failed(request, f"{pause.words}: `ratchet resume` first")
        elif (missing := self._backlog.missing()) is not None:
            self._desk.failed(request, missing)
        else:
            self._start(resuming=False, any_number=True)
            self._asked = request

    # looking for work

    def _poll(self, now: float) -> None:
        settings = self._settings
        self._next_poll = now + settings.check_interval
        new = self._backlog.count()
        self._next_poll = now + self._backlog.interval
        waiting = self._ledger.open_round()
        self._status = replace(self._status, new_contents=new)
        if waiting is not None and waiting.attempts >= settings.max_attempts:
            reason = f"crashed {waiting.attempts} times; last: {self._status.message or 'no message'}"
            log.error("round %d is set aside: %s", waiting.number, reason)
            assert self._lease is not None
            self._ledger.fail(self._lease, reason)
            self._failures = 0
            self._say(ServiceState.IDLE, f"round {waiting.number} was set aside: {reason}")
            return
        pause = self._desk.pause()
        self._status = replace(self._status, paused=pause is not None)
        enough = new >= self._backlog.needed or (new and self._ledger.retrains())
        if waiting is None and (pause is not None or not enough):
            message = f"{pause.words}: `ratchet resume` ends it" if pause else self._backlog.wanted(new)
            if self._status.message != message:
                log.info("waiting: %s", message)
            self._say(ServiceState.IDLE, message)
            return
        self._start(resuming=waiting is not None)

    def _start(self, *, resuming: bool, any_number: bool = False) -> None:
        """any_number: with whatever is new, however little."""
        assert self._lease is not None
        log.info("starting a round%s", " again" if resuming else "")
        track = self._recipe.name
        self._child = Child(self._settings, track, self._machines, self._lease, any_number=any_number)
        if not self._failures:
            several = f" on {self._machines.count} machines" if self._machines.count > 1 else ""
            self._say(ServiceState.STARTING, f"starting a round{several}")

    # judging the child

    def _judge(self, child: Child, now: float) -> None:
        exit_status = child.look()
        beat = child.watched.beat
        if self._asked is not None and beat.round is not None:
            self._desk.done(self._asked, f"round {beat.round} has begun")
            self._asked = None
        if exit_status is None:
            stuck = child.watched.is_stuck(
                now, stall_timeout=self._settings.stall_timeout, load_timeout=self._settings.load_timeout
            )
            if stuck:
                self._recover(
                    now,
                    ServiceState.STALLED,
                    f"no progress for {now - child.watched.since:.0f} s: {beat.message}",
                )
            elif not (self._failures and beat.state is ServiceState.STARTING):
                self._failures = 0  # it runs again: whatever was wrong is over
                self._say(beat.state, beat.message)
            return
        child.kill()  # what is left of its group
        self._child = None
        if exit_status == 0:
            self._failures = 0
            if beat.round_id is not None:
                self._next_poll = now  # there may be enough for the next round already
            self._say(ServiceState.IDLE, beat.message)
            log.info("round finished: %s", beat.message)
            return
        failed = child.failure()
        message = beat.message if failed is None else failed.message
        if beat.permanent if failed is None else failed.permanent:
            self._failures = 1  # ill until a round trains again, not just until the next try
            self._next_poll = now + max(self._settings.check_interval, backoff(1))
            self._say(ServiceState.ERROR, message)
            self._uncount(beat.round_id)
        else:
            self._crashed(
                now, ServiceState.RECOVERING, message or f"the round ended with status {exit_status}"
            )

    def _recover(self, now: float, state: ServiceState, message: str) -> None:
        log.error("%s: killing the round", message)
        assert self._child is not None
        self._child.kill()
        self._child = None
        self._crashed(now, state, message)

    def _crashed(self, now: float, state: ServiceState, message: str) -> None:
        self._failures += 1
        wait = backoff(self._failures)
        self._next_poll = now + wait
        log.error("the round crashed (%s); taking it up again in %.0f s", message, wait)
        self._say(state, message)
        self._next_beat = now  # tell it at once

    def _uncount(self, round_id: int | None) -> None:
        if round_id is not None:
            self._ledger.uncount(round_id)

    # telling

    def _say(self, state: ServiceState, message: str | None) -> None:
        self._status = replace(self._status, state=state, message=message)

    def _beat(self) -> None:
        beat = self._child.watched.beat if self._child is not None else heartbeat.Beat()
        detail = {
            "track": self._recipe.name,
            "round": beat.round,
            "attempt": beat.attempt,
            "step": beat.step,
            "total_steps": beat.total_steps,
            "loss": beat.loss,
            "tokens_per_s": beat.tokens_per_s,
            "eta_s": beat.eta_s,
            "learning_rate": beat.learning_rate,
            "grad_norm": beat.grad_norm,
            "mfu": beat.mfu,
            "memory_bytes": beat.memory_bytes,
            "input_stall": beat.input_stall,
            "gpu_utilisation": beat.gpu_utilisation,
            "gpu_memory_bytes": beat.gpu_memory_bytes,
            "gpu_memory_size_bytes": beat.gpu_memory_size_bytes,
            "message": self._status.message,
            "paused": self._status.paused,
            "new_contents": self._status.new_contents,
            "needed": self._backlog.needed,
            "disks": room(self._folders),
        }
        self._tell("beat", state=self._status.state, detail=as_json(detail))

    def _tell(self, query: str, **parameters: Any) -> None:
        with self._database.transaction() as tx:
            tx.execute(query, service=Service.TRAINER, instance=self._instance, **parameters)

    def _leave(self) -> None:
        log.info("stopping")
        self._canary.stop()
        try:
            if self._child is not None:
                self._child.stop()
                self._child.look()
                self._uncount(self._child.watched.beat.round_id)
            if self._lease is not None:
                self._ledger.release(self._lease)
            self._tell("end_beats")
        except DatabaseUnavailableError as exc:
            log.warning("left without a word to the database: %s", exc)


def main() -> int:
    if parent := os.environ.get("RATCHET_PARENT_PID"):
        die_with_parent(int(parent))
    settings = from_environment()
    logs.setup("trainer", settings.log_level, settings.secrets(), settings.log_format)
    resolved = recipe_files.load(settings.recipe, settings.recipe_overrides)
    logs.bind(track=resolved.name)
    stop = StopSignal()
    here = machines.for_recipe(settings, resolved)
    if not here.is_first:
        Node(settings, resolved.name, here).run(stop)
        return 0
    database = Database(
        settings.database(),
        application="ratchet trainer",
        min_conn=settings.db_pool_min_conn,
        max_conn=settings.db_pool_max_conn,
    )
    log.info("recipe %s (%s, %s)", resolved.name, resolved.base_model, resolved.method)
    sender = Sender(settings)
    sender.start()
    try:
        Daemon(settings, resolved, database).run(stop)
    finally:
        sender.stop()
        database.close()
    return 0
