"""Who may write: the bearer of DASHBOARD_TOKEN, and a browser that has signed in with it."""

import hashlib
import hmac
import threading
import time
from dataclasses import dataclass
from enum import StrEnum

from itsdangerous import BadSignature, URLSafeTimedSerializer
from pydantic import SecretStr

from services.metrics.writes.throttle import Throttle

COOKIE = "ratchet_session"
SESSION = 12 * 3600  # seconds a browser stays signed in
LONGEST_NAME = 100  # characters


class Answer(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    WAIT = "wait"  # too many wrong ones: no guess was looked at


@dataclass(frozen=True)
class Session:
    """A browser that has signed in, and for whom it says it acts."""

    actor: str


class Access:
    """None of its methods says how near a guess was, by its answer or by its time."""

    def __init__(self, token: SecretStr | None) -> None:
        self.is_open = token is not None
        secret = b"" if token is None else token.get_secret_value().encode()
        self._digest = hashlib.sha256(secret).digest()
        signing = hmac.new(secret, b"session of the dashboard", hashlib.sha256).digest()
        self._sessions = URLSafeTimedSerializer(signing, salt="session")
        self._throttle = Throttle()
        self._lock = threading.Lock()

    def guess(self, said: str, address: str) -> Answer:
        """Whether this is the token. A new token ends all sessions: they are signed with it."""
        with self._lock:
            if not self.is_open:
                return Answer.WRONG
            now = time.monotonic()
            if self._throttle.wait(address, now) > 0:
                return Answer.WAIT
            digest = hashlib.sha256(said.strip().encode("utf-8", "surrogateescape")).digest()
            if hmac.compare_digest(digest, self._digest):
                self._throttle.right(address)
                return Answer.RIGHT
            self._throttle.wrong(address, now)
            return Answer.WRONG

    def wait(self, address: str) -> int:
        """Whole seconds until this address may guess again."""
        with self._lock:
            return int(self._throttle.wait(address, time.monotonic())) + 1

    def begin(self, actor: str) -> str:
        """The cookie of a new session."""
        return str(self._sessions.dumps({"actor": actor}))

    def session(self, cookie: str | None) -> Session | None:
        """The session of a cookie; None for one that is not ours, too old, or of another token."""
        if not (cookie and self.is_open):
            return None
        try:
            said = self._sessions.loads(cookie, max_age=SESSION)
        except BadSignature:
            return None
        return Session(str(said["actor"]))
