"""Every error Ratchet raises on purpose: one tree, each member also a standard type.

A message names the thing, its value, what was expected, and what to do.
"""

DISK_FULL = ("No space left on device", "Disk quota exceeded")  # however a library wraps it


def is_disk_full(exc: BaseException) -> bool:
    """Whether this error, of whatever type, comes from a file system without room."""
    return any(words in str(exc) for words in DISK_FULL)


class RatchetError(Exception):
    """Anything Ratchet refuses or cannot do."""


class ConfigurationError(RatchetError, ValueError):
    """A setting or a recipe is missing, misspelt or impossible."""


class DatabaseUnavailableError(RatchetError, ConnectionError):
    """PostgreSQL does not answer, refuses the login, or no connection became free in time."""


class MigrationError(RatchetError, RuntimeError):
    """A migration failed, or one already applied was changed since."""


class LeaseLostError(RatchetError, RuntimeError):
    """Another trainer has taken the track: this one may neither commit nor promote."""


class ModelNotFoundError(RatchetError, FileNotFoundError):
    """A base model, tokenizer or adapter is not where it was looked for."""


class RoundError(RatchetError, RuntimeError):
    """A round cannot go on: what it needs is missing or damaged."""


class PublishError(RatchetError, OSError):
    """An adapter could not be written or moved into place; the one before still stands."""


class UnsafeAdapterError(PublishError):
    """A folder that must not be loaded as adapter or model: it could run code, lead or grow beyond itself."""


class PromotionError(RatchetError, ValueError):
    """A champion cannot be moved so: no such adapter, it was rejected, or it is the champion already."""


class ForgetError(RatchetError, ValueError):
    """Nothing can be forgotten so: there is no such source or path, or another is at it."""


class CanaryError(RatchetError, RuntimeError):
    """What was published is not what was judged."""


class ReceiptError(RatchetError, ValueError):
    """A receipt is missing, damaged, or does not belong to its adapter."""


class ServingError(RatchetError, RuntimeError):
    """An adapter cannot be served, or the server behind does not do as it is asked; the one before stands."""


class StackError(RatchetError, RuntimeError):
    """A part of the local stack did not start, or is not what its pid file says."""


class SourceError(RatchetError, ValueError):
    """What was named as a source cannot be added to the ingest folder."""


class SandboxError(RatchetError, RuntimeError):
    """Generated programs cannot be run safely here, or the sandbox does not answer."""
