"""Messages over a descriptor: bounded, whole, or refused."""

import os
import time

import pytest

from services.sandbox.inside import frames


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            pass


def test_messages_arrive_one_by_one(pipe):
    reader, writer = pipe
    frames.send(writer, {"a": 1})
    frames.send(writer, {"b": "é\ud800"})
    assert [frames.receive(reader), frames.receive(reader)] == [{"a": 1}, {"b": "é\ud800"}]


def test_the_end_is_no_message(pipe):
    reader, writer = pipe
    os.write(writer, b"\0\0\0\7{")
    os.close(writer)
    assert frames.receive(reader) is None


@pytest.mark.parametrize("body", [b"[]", b"{} {}", b"", b"nul", b"\xff\xfe", b"[" * 200_00, b'{"a":1}x'])
def test_what_is_no_object_is_refused(pipe, body):
    reader, writer = pipe
    os.write(writer, len(body).to_bytes(4, "big") + body)
    with pytest.raises(frames.FrameError):
        frames.receive(reader)


def test_a_flood_is_refused_by_its_length_alone(pipe):
    reader, writer = pipe
    os.write(writer, (frames.LARGEST + 1).to_bytes(4, "big"))
    with pytest.raises(frames.FrameError, match="8,388,609 bytes"):
        frames.receive(reader)


def test_too_much_is_not_sent(pipe):
    with pytest.raises(frames.FrameError):
        frames.send(pipe[1], {"text": "x" * frames.LARGEST})


def test_silence_ends_at_the_deadline(pipe):
    with pytest.raises(frames.OutOfTimeError):
        frames.receive(pipe[0], time.monotonic() + 0.01)


def test_half_a_message_ends_at_the_deadline(pipe):
    reader, writer = pipe
    os.write(writer, b"\0\0\0\7{")
    with pytest.raises(frames.OutOfTimeError):
        frames.receive(reader, time.monotonic() + 0.01)


def test_no_test_can_expect_the_end_of_time():
    assert not issubclass(frames.OutOfTimeError, Exception)
