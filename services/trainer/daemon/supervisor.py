"""The daemon's loop.

One trainer a track: the daemon holds a lease and hands its fencing token to the child, which can commit
only while no newer one exists.
"""

import logging
import os
import shutil
import socket
import time

from services.core.db import Database
from services.core.errors import DatabaseUnavailableError, LeaseLostError
from services.core.models import HEARTBEAT_INTERVAL, RequestKind, ServiceState
from services.core.process import StopSignal
from services.core.settings import Settings
from services.trainer import heartbeat
from services.trainer.daemon import backlog, machines, settling
from services.trainer.daemon.canary import Canary
from services.trainer.daemon.child import Child
from services.trainer.daemon.judge import backoff
from services.trainer.daemon.requests import Desk, Request
from services.trainer.daemon.telling import Teller
from services.trainer.ledger import Lease, Ledger
from services.trainer.recipes.recipe import Recipe

log = logging.getLogger(__name__)
TICK = 0.5  # seconds between two looks at the child
CLOSED_FOR = 60.0  # seconds after which a child whose round is closed is not just tidying up


class Daemon:
    """Holds the lease, starts children, judges them. One call of `tick` never blocks for long."""

    def __init__(self, settings: Settings, recipe: Recipe, database: Database) -> None:
        self._settings = settings
        self._recipe = recipe
        self._machines = machines.for_recipe(settings, recipe)
        self._ledger = Ledger(database, recipe.name)
        self._backlog = backlog.of(settings, recipe, database, self._ledger)
        self._instance = f"{socket.gethostname()}:{os.getpid()}"
        self._teller = Teller(
            database,
            recipe.name,
            self._instance,
            (settings.adapters_dir, settings.checkpoints_dir, settings.logs_dir, settings.cache_dir),
        )
        self._lease: Lease | None = None
        self._child: Child | None = None
        self._adapters = settings.adapters_dir / recipe.name
        self._checkpoints = settings.checkpoints_dir / recipe.name
        self._canary = Canary(settings, self._ledger, recipe.name)
        self._desk = Desk(settings, database, recipe.name)
        self._asked: Request | None = None  # for a round that has not begun yet
        self._failures = 0  # children in a row that did not close their round
        self._next_poll = 0.0  # monotonic seconds
        self._next_beat = 0.0

    def run(self, stop: StopSignal) -> None:
        while not stop:
            try:
                self.tick(time.monotonic())
            except DatabaseUnavailableError as exc:
                if self._teller.status.message != str(exc):
                    log.warning("%s; trying again", exc)
                self._teller.note(message=str(exc))
                stop.wait(2.0)
            stop.wait(TICK)
        self._leave()

    def tick(self, now: float) -> None:
        """Look at the child or for work, and tell the database."""
        if self._child is not None:
            self._judge(self._child, now)
        if (found := self._canary.look(self._lease)) is not None:
            self._teller.say(ServiceState.IDLE, found)
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
                self._teller.say(ServiceState.EVALUATING, "trying what was published")
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
                self._teller.say(ServiceState.STANDBY, f"another trainer has the track {self._recipe.name}")
            else:
                log.info("track %s taken, token %d", self._recipe.name, self._lease.token)
                settling.settle(self._ledger, self._adapters, self._checkpoints)
                self._teller.say(ServiceState.IDLE, None)
                self._next_poll = now

    def _follow(self) -> None:
        """What was moved by hand: `current` goes along, and a round that was closed by it ends."""
        if self._lease is None:
            return
        settling.follow(self._ledger, self._adapters)
        beat = None if self._child is None else self._child.watched.beat
        if beat is None or beat.round_id is None or self._ledger.closed_for(beat.round_id) < CLOSED_FOR:
            return
        assert self._child is not None
        log.info("round %s was closed while it ran: stopping it", beat.round)
        self._child.stop()
        if beat.round is not None:  # it saved once more; what nobody takes up may hold what was forgotten
            shutil.rmtree(self._checkpoints / f"round-{beat.round:04}", ignore_errors=True)
        self._child = None
        self._teller.say(ServiceState.IDLE, f"round {beat.round} was closed while it ran")

    # what people ask

    def _heed(self, now: float) -> None:
        """Carry out what was asked of the track. A round that was asked for is answered when it has begun."""
        if self._asked is not None and self._child is None:
            why = self._teller.status.message or "it ended at once"
            self._desk.failed(self._asked, f"no round has begun: {why}")
            self._asked = None
        for request in self._desk.waiting():
            if request.kind is RequestKind.TRAIN:
                if self._asked is None:
                    self._train_now(request)
            elif self._desk.carry_out(request):
                self._teller.note(paused=self._desk.pause() is not None)
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
        self._teller.note(new_contents=new)
        if waiting is not None and waiting.attempts >= settings.max_attempts:
            reason = f"crashed {waiting.attempts} times; last: {self._teller.status.message or 'no message'}"
            log.error("round %d is set aside: %s", waiting.number, reason)
            assert self._lease is not None
            self._ledger.fail(self._lease, reason)
            self._failures = 0
            self._teller.say(ServiceState.IDLE, f"round {waiting.number} was set aside: {reason}")
            return
        pause = self._desk.pause()
        self._teller.note(paused=pause is not None)
        enough = new >= self._backlog.needed or (new and self._ledger.retrains())
        if waiting is None and (pause is not None or not enough):
            message = f"{pause.words}: `ratchet resume` ends it" if pause else self._backlog.wanted(new)
            if self._teller.status.message != message:
                log.info("waiting: %s", message)
            self._teller.say(ServiceState.IDLE, message)
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
            self._teller.say(ServiceState.STARTING, f"starting a round{several}")

    # judging the child

    def _judge(self, child: Child, now: float) -> None:
        exit_status = child.look()
        beat = child.watched.beat
        if self._asked is not None and beat.round is not None:
            self._desk.done(self._asked, f"round {beat.round} has begun")
            self._asked = None
        if exit_status is None:
            self._watch(child, now)
            return
        child.kill()  # what is left of its group
        self._child = None
        if exit_status == 0:
            self._failures = 0
            if beat.round_id is not None:
                self._next_poll = now  # there may be enough for the next round already
            self._teller.say(ServiceState.IDLE, beat.message)
            log.info("round finished: %s", beat.message)
        else:
            self._failed(child, exit_status, now)

    def _watch(self, child: Child, now: float) -> None:
        """It runs: to an end, or for nothing."""
        watched, settings = child.watched, self._settings
        if watched.is_stuck(now, stall_timeout=settings.stall_timeout, load_timeout=settings.load_timeout):
            message = f"no progress for {now - watched.since:.0f} s: {watched.beat.message}"
            log.error("%s: killing the round", message)
            child.kill()
            self._child = None
            self._crashed(now, ServiceState.STALLED, message)
        elif not (self._failures and watched.beat.state is ServiceState.STARTING):
            self._failures = 0  # it runs again: whatever was wrong is over
            self._teller.say(watched.beat.state, watched.beat.message)

    def _failed(self, child: Child, exit_status: int, now: float) -> None:
        """It ended without closing its round, for good or to be tried again."""
        failed, beat = child.failure(), child.watched.beat
        message = beat.message if failed is None else failed.message
        if beat.permanent if failed is None else failed.permanent:
            self._failures = 1  # ill until a round trains again, not just until the next try
            self._next_poll = now + max(self._settings.check_interval, backoff(1))
            self._teller.say(ServiceState.ERROR, message)
            self._uncount(beat.round_id)
        else:
            message = message or f"the round ended with status {exit_status}"
            self._crashed(now, ServiceState.RECOVERING, message)

    def _crashed(self, now: float, state: ServiceState, message: str) -> None:
        self._failures += 1
        wait = backoff(self._failures)
        self._next_poll = now + wait
        log.error("the round crashed (%s); taking it up again in %.0f s", message, wait)
        self._teller.say(state, message)
        self._next_beat = now  # tell it at once

    def _uncount(self, round_id: int | None) -> None:
        if round_id is not None:
            self._ledger.uncount(round_id)

    # telling

    def _beat(self) -> None:
        beat = heartbeat.Beat() if self._child is None else self._child.watched.beat
        self._teller.beat(beat, self._backlog.needed)

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
            self._teller.end()
        except DatabaseUnavailableError as exc:
            log.warning("left without a word to the database: %s", exc)
