"""What a conversion reads: a file as BigCodeBench's are passed around, JSON, JSON lines or Parquet."""

import gzip
import importlib.util
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from services.core.errors import ConfigurationError
from services.trainer.suites import formats
from services.trainer.tasks.reading import Record

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
LISTS = ("data", "tasks", "samples", "rows")  # fields of an object that hold the records


def read(path: Path) -> list[Record]:
    """The records of a file in order. Raises ConfigurationError where it cannot be read, or holds none."""
    if not path.name.endswith(SUFFIXES):
        raise ConfigurationError(f"{path}: its name ends in none of {', '.join(SUFFIXES)}: rename it")
    if path.suffix == ".parquet":
        found: Iterable[Any] = _parquet(path)
    elif path.name.endswith((".json", ".json.gz")):
        found = _json(path)
    else:
        return [(f"{path.name}, line {number}", fields) for number, fields in formats.records(path)]
    return numbered(found, path.name)


def numbered(found: Iterable[Any], where: str) -> list[Record]:
    """Records with their places. Raises ConfigurationError for one that is no object."""
    records: list[Record] = []
    for number, fields in enumerate(found, 1):
        if not isinstance(fields, dict):
            raise ConfigurationError(
                f"{where}, record {number}: a JSON {type(fields).__name__}; expected an object"
            )
        records.append((f"{where}, record {number}", fields))
    return records


def reads_parquet() -> bool:
    """Whether pyarrow is installed."""
    return importlib.util.find_spec("pyarrow") is not None


def _json(path: Path) -> Iterable[Any]:
    """A list of records, an object that has one, or an object of records by their task_id; or JSON lines."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}. Expected UTF-8 text or gzip of it") from exc
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        if "Extra data" in str(exc):  # lines under the name of one document
            return [fields for _, fields in formats.records(path)]
        raise ConfigurationError(f"{path}: {exc}; expected a JSON list of tasks") from exc
    return _listed(value, path)


def _listed(value: Any, path: Path) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for name in LISTS:
            if isinstance(value.get(name), list):
                return list(value[name])
        if value and all(isinstance(each, dict) for each in value.values()):
            return [_with_id(fields, name) for name, fields in value.items()]
        if "task_id" in value:
            return [value]
    raise ConfigurationError(
        f"{path}: expected a list of tasks, an object with such a list as {' or '.join(LISTS)}, or an object"
        " of tasks by their task_id"
    )


def _with_id(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"task_id": name, **fields}


def _parquet(path: Path) -> list[Any]:
    if not reads_parquet():
        raise ConfigurationError(
            f"{path}: reading Parquet takes pyarrow, which is not installed: `pip install pyarrow` beside"
            " Ratchet, or give the same tasks as JSON lines"
        )
    from pyarrow import parquet  # type: ignore[import-not-found, unused-ignore]

    try:
        rows: list[Any] = parquet.read_table(path).to_pylist()
    except Exception as exc:  # of many types, as the file is damaged here or there
        raise ConfigurationError(f"{path} cannot be read as Parquet: {exc}") from exc
    return rows
