"""BigCodeBench from the Hugging Face hub, whose splits are named by version: v0.1.0_hf, …, v0.1.4.

Its files are Parquet. Where pyarrow is not installed the hub's dataset viewer is asked for the rows, a
hundred at a time (https://huggingface.co/docs/dataset-viewer/rows).
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from services.core.errors import ConfigurationError
from services.trainer.plan_config import hub_answers
from services.trainer.tasks import inputs
from services.trainer.tasks.reading import Record

VIEWER = "https://datasets-server.huggingface.co"
AT_ONCE = 100  # rows, the most that it gives
TIMEOUT = 30.0  # seconds for an answer
FILE = re.compile(r"(?:.*/)?(?P<version>v(?P<numbers>\d+(?:\.\d+)*)\w*)(?:-\d+-of-\d+)?\.(?:parquet|jsonl)")


@dataclass(frozen=True)
class Fetched:
    records: list[Record]
    says: str  # which data set, which version


def fetch(repo: str, version: str | None, *, token: str | None, cache: Path) -> Fetched:
    """All records of a version, the newest where none is named.

    Raises ConfigurationError where the hub cannot be asked, or there is no such data set or version.
    """
    if not hub_answers():
        raise _unreachable(repo, ConnectionError("it does not answer"))
    files = _files(repo, token)
    chosen = choose(repo, files, version)
    says = f"{repo} {chosen}"
    paths = [name for name in files if (found := FILE.fullmatch(name)) and found["version"] == chosen]
    if inputs.reads_parquet() or not any(path.endswith(".parquet") for path in paths):
        rows = [record for path in sorted(paths) for record in _downloaded(repo, path, token, cache)]
        return Fetched(rows, says)
    return Fetched(inputs.numbered(_viewed(repo, chosen, token), says), says)


def choose(repo: str, files: Sequence[str], version: str | None) -> str:
    """The version asked for, or the newest there is. Raises ConfigurationError with those there are."""
    found = [match for name in files if (match := FILE.fullmatch(name))]
    order = sorted(
        found, key=lambda each: ([int(part) for part in each["numbers"].split(".")], each["version"])
    )
    versions = list(dict.fromkeys(each["version"] for each in order))
    if not versions:
        raise ConfigurationError(
            f"{repo} has no file of a version, as data/v0.1.4-00000-of-00001.parquet: expected BigCodeBench,"
            " or a file of it as --input"
        )
    if version is None:
        return versions[-1]
    if version not in versions:
        raise ConfigurationError(f"{repo} has no version {version!r}: expected {', '.join(versions)}")
    return version


def _files(repo: str, token: str | None) -> list[str]:
    from huggingface_hub import HfApi

    try:
        return list(HfApi().list_repo_files(repo, repo_type="dataset", token=token))
    except Exception as exc:  # of many types: no such data set, gated, no network, switched off
        raise _unreachable(repo, exc) from exc


def _downloaded(repo: str, name: str, token: str | None, cache: Path) -> list[Record]:
    from huggingface_hub import hf_hub_download

    try:
        path = hf_hub_download(repo, name, repo_type="dataset", token=token, cache_dir=cache)
    except Exception as exc:
        raise _unreachable(repo, exc) from exc
    return inputs.read(Path(path))


def _viewed(repo: str, version: str, token: str | None) -> Iterator[Any]:
    """The rows as the viewer gives them. Raises ConfigurationError for rows that it gives cut."""
    offset, total = 0, 1
    while offset < total:
        asked = {"dataset": repo, "config": "default", "split": version, "offset": offset, "length": AT_ONCE}
        page = _page(repo, f"{VIEWER}/rows?{urlencode(asked)}", token)
        total, rows = int(page["num_rows_total"]), page["rows"]
        if not rows:
            raise ConfigurationError(f"{repo}: the dataset viewer gives {offset} rows of {total}; try again")
        for each in rows:
            if each.get("truncated_cells"):
                raise ConfigurationError(
                    f"{repo}: the dataset viewer cuts row {each.get('row_idx')}: `pip install pyarrow` beside"
                    " Ratchet, and the file itself is read"
                )
            yield each["row"]
        offset += len(rows)


def _page(repo: str, address: str, token: str | None) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the hub's own address
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            page = json.load(answer)
    except (OSError, ValueError) as exc:
        raise _unreachable(repo, exc) from exc
    if not isinstance(page, dict) or not isinstance(page.get("rows"), list) or "num_rows_total" not in page:
        raise ConfigurationError(f"{repo}: the dataset viewer answers {page!r:.200}; expected rows")
    return page


def _unreachable(repo: str, exc: Exception) -> ConfigurationError:
    said = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
    return ConfigurationError(
        f"data set {repo} cannot be had from the hub: {said} (is the name right, the network there, and"
        " HF_TOKEN set if it is gated?). A file of it can be given as --input as well"
    )
