"""The versions of files in a repository's history, as they are compared: the last ones read stay at hand."""

import time
from collections import OrderedDict

from services.processor.sources import line_diff
from services.processor.sources.git import Repository
from services.processor.sources.packs import ObjectError
from services.processor.sources.trees import OutOfBudgetError
from services.processor.thresholds import MAX_FILE_BYTES

CACHE_BYTES = 16_000_000


class Versions:
    def __init__(self, repository: Repository, deadline: float) -> None:
        """`deadline`: monotonic seconds."""
        self._objects = repository.objects
        self._deadline = deadline
        self._cache: OrderedDict[bytes, bytes] = OrderedDict()
        self._cached_bytes = 0

    def read(self, blob: bytes) -> bytes | None:
        """The bare text with this id (see line_diff.bare); None when it is too large, missing or no file.

        Raises OutOfBudgetError.
        """
        if (known := self._cache.get(blob)) is not None:
            self._cache.move_to_end(blob)
            return known
        if time.monotonic() > self._deadline:
            raise OutOfBudgetError
        try:
            found = self._objects.read(bytes.fromhex(blob.decode()), MAX_FILE_BYTES)
        except ObjectError:
            return None
        if found.kind != b"blob":
            return None
        text = self._cache[blob] = line_diff.bare(found.data)
        self._cached_bytes += len(text)
        while self._cached_bytes > CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])
        return text
