"""What passes between a processor and its judge process: four bytes of length, then msgpack.

Both sides decode into typed values: a judge that was taken over can answer nonsense, but not make us
run it.
"""

import signal
import struct

import msgspec

from services.processor.reasons import Reason
from services.processor.values import Judgement, Parsed, Rejection

CPU_SECONDS = 10  # a request may use; the slowest megabyte we know takes under two
LENGTH = struct.Struct("<I")


class ToJudge(msgspec.Struct, tag=True):
    files: list[tuple[str, bytes]]  # path below its source, bytes
    alone: bool = False  # in a fork of the judge: the file may have ended another


class ToParse(msgspec.Struct, tag=True):
    texts: list[tuple[str, str]]  # language, text
    alone: bool = False


Request = ToJudge | ToParse
encode = msgspec.msgpack.Encoder().encode
requests = msgspec.msgpack.Decoder(Request)
judgements = msgspec.msgpack.Decoder(list[Judgement])
parsed = msgspec.msgpack.Decoder(list[Parsed])


def how_it_ended(status: int) -> Rejection:
    """What to say of a file whose judge ended with this exit status, below nought for a signal."""
    if status == -signal.SIGXCPU:
        return Rejection(Reason.JUDGE_TIMEOUT, f"more than {CPU_SECONDS} s of processor time")
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Rejection(Reason.JUDGE_CRASHED, f"the judge process ended with {how}")
