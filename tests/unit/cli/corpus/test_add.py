"""`ratchet add`: what it copies, what it clones, and what it says to everything else."""

import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from dulwich.server import DictBackend
from dulwich.web import HTTPGitApplication

from services.cli import environment
from services.cli.corpus import add, clone
from services.core.errors import ConfigurationError, SourceError
from services.processor.sources import git, history, source
from services.processor.sources.options import Options
from services.processor.sources.source import Kind
from services.processor.values import Read
from tests.unit.processor.repositories import Made


@pytest.fixture
def ingest(tmp_path: Path) -> Path:
    return tmp_path / "ingest"


def left(ingest: Path) -> list[str]:
    """What is in the ingest folder, hidden or not."""
    return sorted(path.name for path in ingest.iterdir()) if ingest.exists() else []


# Paths


def test_a_directory_is_copied_whole(tmp_path: Path, ingest: Path) -> None:
    """With its times and its repository; links, special files and caches stay behind."""
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "src" / "a.py").write_text("x = 1\n")
    os.utime(repo / "src" / "a.py", ns=(5, 7))
    (repo / ".git").mkdir()
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repo / "__pycache__").mkdir()
    (repo / "__pycache__" / "a.pyc").write_text("")
    (repo / "passwd.py").symlink_to("/etc/passwd")
    (repo / "root").symlink_to("/")
    os.mkfifo(repo / "pipe.py")
    added = add.add(ingest, str(repo))
    assert (added.name, added.files, added.bytes, added.left_out) == ("repo", 2, 27, 3)
    assert (ingest / "repo/src/a.py").stat().st_mtime_ns == 7
    assert sorted(p.name for p in (ingest / "repo").rglob("*")) == [".git", "HEAD", "a.py", "src"]
    assert left(ingest) == ["repo"]


def test_an_archive_is_copied(tmp_path: Path, ingest: Path) -> None:
    """Under a name of one's own, if wanted."""
    (tmp_path / "repo.tar.gz").write_bytes(b"\x1f\x8b")
    assert add.add(ingest, str(tmp_path / "repo.tar.gz")).bytes == 2
    assert add.add(ingest, str(tmp_path / "repo.tar.gz"), name="other.tgz").name == "other.tgz"
    assert left(ingest) == ["other.tgz", "repo.tar.gz"]


def test_include_and_exclude_are_written_beside_the_source(tmp_path: Path, ingest: Path) -> None:
    """Where the processor looks for them."""
    (tmp_path / "repo").mkdir()
    add.add(ingest, str(tmp_path / "repo"), include=["*.py"], exclude=["gen/"])
    from services.processor.sources import options

    chosen = options.read(ingest / "repo")
    assert chosen.refuse("a.py") is None
    assert chosen.refuse("a.js") is not None
    assert chosen.refuse("gen/a.py") is not None


def test_a_pattern_that_cannot_be_applied_is_an_error_before_anything_is_copied(
    tmp_path: Path, ingest: Path
) -> None:
    """It names the option and the pattern."""
    (tmp_path / "repo").mkdir()
    with pytest.raises(ConfigurationError, match=r"--include, --exclude: exclude: '\*a\*b\*c\*'"):
        add.add(ingest, str(tmp_path / "repo"), exclude=["*a*b*c*"])
    assert left(ingest) == []


def test_what_is_there_already_stays(tmp_path: Path, ingest: Path) -> None:
    """A second copy needs another name."""
    (tmp_path / "repo").mkdir()
    add.add(ingest, str(tmp_path / "repo"))
    with pytest.raises(SourceError, match="is there already: remove it, or give another name"):
        add.add(ingest, str(tmp_path / "repo"))
    assert add.add(ingest, str(tmp_path / "repo"), name="again").name == "again"


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a\nb", "x" * 300, "a.ratchet.yaml"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, ingest: Path, name: str) -> None:
    """With advice."""
    (tmp_path / "repo").mkdir()
    if name:
        with pytest.raises(SourceError, match="--name"):
            add.add(ingest, str(tmp_path / "repo"), name=name)
        assert left(ingest) == []


def test_what_is_no_source_is_refused(tmp_path: Path, ingest: Path) -> None:
    """Nothing there, a plain file, the ingest folder's own parent."""
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(SourceError, match="cannot be read"):
        add.add(ingest, str(tmp_path / "none"))
    with pytest.raises(SourceError, match="expected a directory or an archive"):
        add.add(ingest, str(tmp_path / "notes.txt"))
    with pytest.raises(SourceError, match="holds the ingest folder itself"):
        add.add(ingest, str(tmp_path))


def test_a_copy_that_fails_leaves_nothing(
    tmp_path: Path, ingest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk in the middle."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x")

    def fail(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(add.shutil, "copyfileobj", fail)
    with pytest.raises(SourceError, match="No space left on device"):
        add.add(ingest, str(tmp_path / "repo"))
    assert left(ingest) == []


# URLs


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.com/a.git", "http:// is not supported, expected https"),
        ("ssh://git@example.com/a.git", "ssh:// is not supported"),
        ("git://example.com/a.git", "git:// is not supported"),
        ("file:///etc", "file:// is not supported"),
        ("ext::sh -c id://x", "not supported"),
        ("https://user:hunter2@example.com/a.git", "holds credentials"),
        ("https://hunter2@example.com/a.git", "holds credentials"),
        ("https://example.com/a.git?token=hunter2", "has a query"),
        ("https://example.com", "expected https://host/path"),
        ("https://[::1/a", "not a URL"),
    ],
)
def test_only_plain_https_is_cloned(ingest: Path, url: str, said: str) -> None:
    """And no message repeats a secret."""
    with pytest.raises(SourceError, match=said) as failure:
        add.add(ingest, url)
    assert "hunter2" not in str(failure.value)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of our own for 127.0.0.1, key and all in one file."""
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    made_of = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    valid_for = ["-days", "2", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", *made_of, *valid_for, "-keyout", path, "-out", f"{path}.crt"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl makes the certificate, and it is not here")
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


@pytest.fixture
def upstream(tmp_path: Path) -> Made:
    made = Made(tmp_path / "upstream")
    made.commit({"a.py": b"one = 1\n", "d/b.py": b"two = 2\n"}, seconds=100)
    return made


@pytest.fixture
def served(upstream: Made, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a real https server that serves `upstream` as /team/project.git."""
    git_application = HTTPGitApplication(DictBackend({"/team/project.git": upstream.repo}))

    def application(environ, start_response):
        if environ["PATH_INFO"].startswith("/away"):
            start_response("302 Found", [("Location", "http://127.0.0.1:9/team/project.git/info/refs")])
            return [b""]
        if environ["PATH_INFO"].startswith("/private"):
            start_response("401 Unauthorized", [("WWW-Authenticate", "Basic")])
            return [b""]
        return git_application(environ, start_response)

    server = make_server("127.0.0.1", 0, application, server_class=Server, handler_class=Silent)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    yield f"https://127.0.0.1:{server.server_port}/team/project.git"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_repository_is_cloned_and_read(served: str, ingest: Path, upstream: Made) -> None:
    """Bare, with its history, under the name the URL ends in."""
    added = add.add(ingest, served)
    assert (added.name, added.updated, added.commit) == ("project", False, upstream.repo.head().decode())
    (found,) = source.find(ingest)
    assert found.kind is Kind.BARE
    assert git.head(found.path) == added.commit
    with source.reader(found) as files:
        reads = {item.path: files.read(item) for item in source.walk(found, Options())}
    assert isinstance(reads["a.py"], Read)
    assert reads["a.py"].data == b"one = 1\n"
    assert {change.path for change in history.History(found.path)} == {"a.py", "d/b.py"}
    assert left(ingest) == ["project"]


def test_the_same_url_again_fetches_what_is_new(served: str, ingest: Path, upstream: Made) -> None:
    """And what was put into the clone's configuration meanwhile has no say."""
    first = add.add(ingest, served).commit
    second = upstream.commit({"a.py": b"one = 2\n"}, [str(first)], seconds=200)
    (ingest / "project" / "config").write_text("[include]\n\tpath = /etc/passwd\n[core]\n\tbare = nonsense\n")
    (ingest / "project" / "hooks").mkdir(exist_ok=True)
    hook = ingest / "project" / "hooks" / "post-update"
    hook.write_text(f"#!/bin/sh\ntouch {ingest}/ran\n")
    hook.chmod(0o755)
    again = add.add(ingest, served)
    assert (again.updated, again.commit) == (True, second)
    assert git.head(ingest / "project") == second
    assert (ingest / "project" / "config").read_bytes() == clone.CONFIG
    assert left(ingest) == ["project"]
    assert add.add(ingest, served).commit == second


def test_another_url_of_the_same_name_is_refused(served: str, ingest: Path) -> None:
    """It would replace a source by another."""
    (ingest / "project").mkdir(parents=True)
    with pytest.raises(SourceError, match="is there already"):
        add.add(ingest, served)


def test_an_unknown_certificate_is_refused(
    served: str, ingest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is left behind."""
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SourceError, match=r"certificate|CERTIFICATE"):
        add.add(ingest, served)
    assert left(ingest) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/none/project.git", "no git repository there"),
        ("/private/project.git", "asks for a login"),
        ("/away/project.git", "redirected to http:, expected https:"),
    ],
)
def test_what_the_server_refuses_is_said(served: str, ingest: Path, path: str, said: str) -> None:
    """With the URL; a redirect to plain http is not followed."""
    url = served.removesuffix("/team/project.git") + path
    with pytest.raises(SourceError, match=said):
        add.add(ingest, url)
    assert left(ingest) == []


def test_an_empty_repository_has_nothing_to_add(served: str, ingest: Path, upstream: Made) -> None:
    """No commit, no source."""
    (upstream.path / "refs/heads/main").unlink()
    with pytest.raises(SourceError, match="no commit yet"):
        add.add(ingest, served)
    assert left(ingest) == []


def test_nobody_there_is_an_error_in_words(ingest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a traceback."""
    monkeypatch.setattr(clone.urllib3, "Retry", lambda *_args, **_kw: False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    with pytest.raises(SourceError, match="refused"):
        add.add(ingest, "https://127.0.0.1:1/a/b.git")


def test_json_says_what_came_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object on one line."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x")
    settings = environment.read({"INGEST_DIR": str(tmp_path / "in")}, project=tmp_path)
    add.run(settings, str(tmp_path / "repo"), as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert (said["name"], said["files"], said["commit"]) == ("repo", 1, None)
