"""From the paths and URLs that a person names to the sources there."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from services.cli.asking.locate import PathError
from services.cli.corpus.remote import Folder, Root, is_url
from services.cli.printing.inert import inert
from services.processor.sources import archives, git, source
from services.processor.sources.source import Source


def gather(paths: Sequence[str]) -> dict[Root, list[Source]]:
    """The sources of each path or URL, by the folder they lie in.

    A repository or an archive is a source, any other folder one of sources. Raises PathError for a path
    that is neither, and when two sources have one name.
    """
    roots: dict[Root, list[Source]] = {}
    for path in paths:
        try:
            root, found = _in_folder(Folder(path)) if is_url(path) else _on_disk(Path(path).resolve())
        except OSError as exc:
            raise PathError(f"{path} cannot be listed ({exc.strerror or exc})") from exc
        if not found:
            raise PathError(f"{path} is no repository, no archive ({_suffixes()}) and no folder of sources")
        roots.setdefault(root, []).extend(found)
    names = Counter(each.printable for found in roots.values() for each in found)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise PathError(f"two sources are called {inert(twice[0])!r}: rename one, or take them in one by one")
    return roots


def _in_folder(folder: Folder) -> tuple[Root, list[Source]]:
    return folder, folder.sources()


def _on_disk(path: Path) -> tuple[Root, list[Source]]:
    if not (path.is_file() or git.is_repository(path / ".git") or git.is_repository(path)):
        return path, source.find(path)
    beside = source.find(path.parent)
    return path.parent, [each for each in beside if each.path == path and each.kind is not source.Kind.LOOSE]


def _suffixes() -> str:
    return ", ".join((*archives.ZIPS, *list(archives.TARS)[:2], "…"))
