"""Small git repositories for tests, made object by object."""

import os
from collections.abc import Sequence
from pathlib import Path

from dulwich.index import commit_tree
from dulwich.objects import Blob, Commit
from dulwich.repo import Repo

FILE, LINK, SUBMODULE = 0o100644, 0o120000, 0o160000


class Made:
    """A repository that grows by whole trees."""

    def __init__(self, path: Path, *, bare: bool = True) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.repo = Repo.init_bare(str(path)) if bare else Repo.init(str(path))

    def commit(
        self,
        files: dict[str, bytes],
        parents: Sequence[str] = (),
        seconds: int = 1_700_000_000,
        modes: dict[str, int] | None = None,
    ) -> str:
        """A commit of this tree, which HEAD is on from then on; its id."""
        entries = []
        for name, data in files.items():
            mode = (modes or {}).get(name, FILE)
            if mode == SUBMODULE:
                entries.append((os.fsencode(name), b"1" * 40, mode))
                continue
            blob = Blob.from_string(data)
            self.repo.object_store.add_object(blob)
            entries.append((os.fsencode(name), blob.id, mode))
        return self.commit_of(commit_tree(self.repo.object_store, entries), parents, seconds)

    def commit_of(self, tree: bytes, parents: Sequence[str] = (), seconds: int = 1_700_000_000) -> str:
        commit = Commit()
        commit.tree, commit.parents = tree, [parent.encode() for parent in parents]
        commit.author = commit.committer = b"A U Thor <a@example.com>"
        commit.author_time = commit.commit_time = seconds
        commit.author_timezone = commit.commit_timezone = 3600
        commit.message = b"a message\n"
        self.repo.object_store.add_object(commit)
        directory = Path(self.repo.controldir())
        (directory / "refs/heads/main").write_bytes(commit.id + b"\n")
        (directory / "HEAD").write_bytes(b"ref: refs/heads/main\n")
        return commit.id.decode()

    def pack(self) -> None:
        """Move every object into one pack."""
        self.repo.object_store.pack_loose_objects()
