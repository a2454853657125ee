"""What the Tab key offers: names of folders that lie here. No database is asked, and nothing is an error."""

from collections.abc import Iterator
from pathlib import Path

SUBJECTS = ("base", "champion")
SERVICES = ("processor", "trainer", "metrics", "sandbox", "postgres", "up")


def tracks(incomplete: str) -> list[str]:
    """Tracks that have published an adapter."""
    return _starting(incomplete, (folder.name for folder in _folders(_adapters_dir())))


def adapters(incomplete: str) -> list[str]:
    """Adapters of the recipe's track by their own names, newest first; of others as TRACK/NAME."""
    here, base = _recipe(), _adapters_dir()
    own = [folder.name for folder in _folders(base / here)] if here else []
    others = [f"{track.name}/{folder.name}" for track in _folders(base) for folder in _folders(track)]
    return _starting(incomplete, [*reversed(own), *others])


def subjects(incomplete: str) -> list[str]:
    """Whoever can answer: the base model, champions, adapters."""
    return [*_starting(incomplete, SUBJECTS), *tracks(incomplete), *adapters(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """The recipes that ship."""
    from services.core.settings import PROJECT

    return _starting(incomplete, sorted(path.stem for path in (PROJECT / "recipes").glob("*.yaml")))


def experiments(incomplete: str) -> list[str]:
    """The experiments that ship."""
    from services.core.settings import PROJECT

    folder = PROJECT / "recipes" / "experiments"
    return _starting(incomplete, sorted(path.stem for path in folder.glob("*.yaml")))


def sources(incomplete: str) -> list[str]:
    """Folders of the ingest folder."""
    return _starting(incomplete, (folder.name for folder in _folders(_settings_path("ingest_dir"))))


def services(incomplete: str) -> list[str]:
    """Parts of the stack that write a log."""
    return _starting(incomplete, SERVICES)


def _starting(incomplete: str, names: Iterator[str] | list[str] | tuple[str, ...]) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def _folders(path: Path | None) -> list[Path]:
    """Visible folders in a folder, by name; a link, as `current` is, is none."""
    try:
        entries = sorted(path.iterdir()) if path else []
    except OSError:
        return []
    return [
        entry for entry in entries if entry.is_dir() and not entry.is_symlink() and entry.name[0] not in "._"
    ]


def _adapters_dir() -> Path:
    return _settings_path("adapters_dir") or Path("adapters")


def _recipe() -> str | None:
    recipe = _setting("recipe")
    return str(recipe) if recipe is not None else None


def _settings_path(field: str) -> Path | None:
    value = _setting(field)
    return value if isinstance(value, Path) else None


def _setting(field: str) -> object:
    """A setting as a command would have it; None where the settings are wrong, which the command will say."""
    from services.cli import environment
    from services.core.errors import RatchetError

    try:
        return getattr(environment.read().settings, field)
    except RatchetError:
        return None
