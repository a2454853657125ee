"""Clone a repository over https into a bare one, or fetch what is new: no git, no hooks, no filters.

Bare, so that nothing in the repository decides what is written where. Only HEAD's branch is
fetched, with its whole history: that says when each file changed last.
"""

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3
from dulwich.client import HTTPUnauthorized, Urllib3HttpGitClient
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from dulwich.objects import ObjectID
from dulwich.refs import Ref
from dulwich.repo import Repo

from services.core.errors import SourceError

BRANCH = Ref(b"refs/heads/upstream")  # the only one we keep: wherever the other side's HEAD is
ORIGIN = "ratchet-origin"  # a file in the repository: where it was cloned from
CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
TIMEOUT = urllib3.Timeout(connect=20.0, read=120.0)  # seconds
Say = Callable[[str], None]


def check_url(url: str) -> str:
    """The URL as it may be stored. Raises SourceError for anything but plain https, never naming a secret."""
    try:
        parts = urlsplit(url)
        host, has_login = parts.hostname, parts.username is not None or parts.password is not None
        _ = parts.port
    except ValueError as exc:
        raise SourceError(f"not a URL: {exc}") from exc
    if parts.scheme != "https":
        raise SourceError(
            f"{parts.scheme}:// is not supported, expected https://host/path "
            "(clone it yourself and `ratchet add` the directory)"
        )
    if has_login:
        raise SourceError(
            f"the URL of {host} holds credentials, which would be kept: leave them out "
            "(a private repository: clone it yourself and `ratchet add` the directory)"
        )
    if not host or not parts.path.strip("/"):
        raise SourceError("expected https://host/path")
    if parts.query or parts.fragment or any(ord(char) < 0x21 for char in url):
        raise SourceError(f"the URL of {host} has a query, a fragment or blanks, expected https://host/path")
    return url.rstrip("/")


def clone(url: str, into: Path, say: Say) -> str:
    """Clone into the directory `into`, which must not exist; the commit of HEAD. Raises SourceError."""
    into.mkdir()
    with Repo.init_bare(str(into)):
        pass
    return fetch(url, into, say)


def fetch(url: str, repository: Path, say: Say) -> str:
    """Bring a clone up to its origin's HEAD; the commit. Raises SourceError.

    The clone's configuration is written anew first and alternates refused: someone else may have
    been there since.
    """
    (repository / "objects" / "info" / "alternates").unlink(missing_ok=True)
    _write(repository / "config", CONFIG)
    try:
        with Repo(str(repository)) as target:
            client = Urllib3HttpGitClient(url, pool_manager=_connections(), thin_packs=True)
            result = client.fetch(
                url,
                target,
                determine_wants=_head_only,
                progress=lambda data: say(data.decode("utf-8", "replace").strip()),
                ref_prefix=[b"HEAD"],
            )
            head = result.refs.get(Ref(b"HEAD"))
            if head is None:
                raise SourceError(f"{url} has no commit yet")
            target.refs[BRANCH] = head
            target.refs.set_symbolic_ref(Ref(b"HEAD"), BRANCH)
    except NotGitRepository as exc:
        raise SourceError(f"{url}: no git repository there, or a private one") from exc
    except HTTPUnauthorized as exc:
        raise SourceError(
            f"{url} asks for a login: clone it yourself and `ratchet add` the directory"
        ) from exc
    except (GitProtocolError, HangupException, urllib3.exceptions.HTTPError) as exc:
        raise SourceError(f"{url}: {_cause(exc)}") from exc
    except OSError as exc:
        raise SourceError(f"{url}: cannot be written to {repository} ({exc.strerror or exc})") from exc
    except (AssertionError, KeyError, ValueError, EOFError) as exc:  # what dulwich raises for a bad answer
        raise SourceError(f"{url}: its answer makes no sense ({type(exc).__name__}: {exc})") from exc
    _write(repository / ORIGIN, url.encode() + b"\n")
    return head.decode()


def origin(repository: Path) -> str | None:
    """Where `clone` got this repository from; None if it did not."""
    try:
        return (repository / ORIGIN).read_bytes()[:4_000].decode().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _head_only(refs: Any, depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 — as dulwich calls it
    head = refs.get(Ref(b"HEAD"))
    return [head] if head is not None else []


class _HttpsOnly:
    """Refuses what is not https, also where a redirect leads."""

    def urlopen(self, method: str, url: str, redirect: bool = True, **kw: Any) -> Any:
        if not url.startswith("https://"):
            raise urllib3.exceptions.URLSchemeUnknown(
                f"redirected to {urlsplit(url).scheme}:, expected https:"
            )
        return super().urlopen(method, url, redirect=redirect, **kw)  # type: ignore[misc]


class _Direct(_HttpsOnly, urllib3.PoolManager):  # type: ignore[misc]
    pass


class _ByProxy(_HttpsOnly, urllib3.ProxyManager):  # type: ignore[misc]
    pass


def _connections() -> urllib3.PoolManager:
    """Certificates as OpenSSL finds them: SSL_CERT_FILE names another file. HTTPS_PROXY is honoured."""
    settings: dict[str, Any] = {
        "ssl_context": ssl.create_default_context(),
        "timeout": TIMEOUT,
        "retries": urllib3.Retry(3, redirect=5),
        "headers": {"User-Agent": "git/ratchet"},  # some servers answer nobody but git
    }
    proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    return _ByProxy(proxy, **settings) if proxy else _Direct(**settings)


def _cause(exc: BaseException) -> str:
    """What went wrong at the bottom, without the layers of retrying around it."""
    text = str(exc)
    marker = "Caused by "
    return (
        text[text.index(marker) + len(marker) :].strip("()") if marker in text else text or type(exc).__name__
    )


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)
