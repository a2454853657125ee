"""Where things have their pages."""

from urllib.parse import quote


def round_page(track: str, number: int) -> str:
    return f"/rounds/{quote(track, safe='')}/{number}"


def adapter_page(track: str, directory: str) -> str:
    return f"/adapters/{quote(track, safe='')}/{quote(directory, safe='')}"


def source_page(name: str) -> str:
    return f"/ingest/sources/{quote(name, safe='')}"


def content_page(sha256: str) -> str:
    return f"/contents/{sha256}"
