"""What the readers of archives give: a member, and the means to load its bytes."""

from collections.abc import Callable
from typing import NamedTuple

from services.processor.values import Rejection


class Member(NamedTuple):
    name: bytes  # as the archive spells it; components divided by /
    size: int  # bytes, as announced
    time: int  # seconds since 1970, as announced
    is_directory: bool
    refused: Rejection | None  # by what it is: a link, a device, encrypted


# The member's bytes. Raises BrokenArchiveError, ArchiveTooLargeError.
Load = Callable[[], bytes]
