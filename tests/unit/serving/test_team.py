"""A team behind the front: its roles' names, and that they never stand for adapters of two releases."""

import asyncio
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import ServingError
from services.serving.adapters import open_adapter
from services.serving.follower import Follower
from services.serving.front import create_app
from services.serving.names import Name, parse
from services.serving.shelf import Policy
from services.trainer import publish
from services.trainer.parity import record
from services.trainer.parity.record import Leg, Parity
from tests.unit.serving.published import Server, followed, make, make_team, model, now, two

TRACK = "pair"
NAMES = [f"{TRACK}-analyzer", f"{TRACK}-coder"]
READERS, MOVES = 12, 32


@pytest.fixture
def track_dir(tmp_path: Path) -> Path:
    """Two published teams; the first is the champion."""
    return two(tmp_path / TRACK, make_team)


words = st.text("abcdefghijklmnopqrstuvwxyz0123456789._-", min_size=1)


@given(words, st.none() | words, st.none() | words)
def test_a_name_is_read_as_it_was_made(track: str, role: str | None, release: str | None) -> None:
    name = Name(role, release)
    assert parse(track, name.of(track)) == name


@pytest.mark.parametrize(
    "asked", ["", "pai", "other", "pair-", "pairs", "pair@", "pair-coder@", "@round-0001"]
)
def test_what_is_no_name_of_the_track_is_none(asked: str) -> None:
    assert parse(TRACK, asked) is None


def test_each_role_is_answered_by_its_adapter(track_dir: Path) -> None:
    async def test(follower: Follower, server: Server) -> None:
        assert [await model(follower, name) for name in NAMES] == [f"{name}@round-0001" for name in NAMES]
        assert server.loaded[f"{TRACK}-coder@round-0001"] == str(
            (track_dir / "round-0001" / "coder").resolve()
        )

    followed(track_dir, test)


def test_a_promotion_exchanges_every_role(track_dir: Path) -> None:
    async def test(follower: Follower, server: Server) -> None:
        publish.point_current(track_dir, "round-0002")
        await now(follower)
        assert set(server.loaded) == {f"{name}@round-0002" for name in NAMES}
        assert follower.status()["roles"] == ["analyzer", "coder"]

    followed(track_dir, test)


def test_one_role_that_is_refused_leaves_the_team_before_whole(track_dir: Path) -> None:
    """And nothing of the new one behind."""

    async def test(follower: Follower, server: Server) -> None:
        server.refused_models = {f"{TRACK}-coder@round-0002"}
        publish.point_current(track_dir, "round-0002")
        await now(follower)
        assert [await model(follower, name) for name in NAMES] == [f"{name}@round-0001" for name in NAMES]
        assert set(server.loaded) == {f"{name}@round-0001" for name in NAMES}
        assert follower.status()["status"] == "behind"

    followed(track_dir, test)


def test_a_role_that_the_server_has_lost_is_loaded_again(track_dir: Path) -> None:
    async def test(follower: Follower, server: Server) -> None:
        del server.loaded[f"{TRACK}-analyzer@round-0001"]
        await now(follower)
        assert set(server.loaded) == {f"{name}@round-0001" for name in NAMES}

    followed(track_dir, test)


def test_the_round_that_analysed_can_be_asked_for_its_program(track_dir: Path) -> None:
    """After a promotion too: so a client never mixes two rounds."""

    async def test(follower: Follower, server: Server) -> None:
        analysed = await model(follower, NAMES[0])
        publish.point_current(track_dir, "round-0002")
        await now(follower)
        assert await model(follower, analysed.replace("-analyzer", "-coder")) == f"{TRACK}-coder@round-0001"

    followed(track_dir, test)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (TRACK, r"is a team: ask pair-analyzer, then pair-coder"),
        (f"{TRACK}-tester", r"has no role 'tester', it is a team: ask pair-analyzer, then pair-coder"),
        (f"{TRACK}-coder@round-0099", r"has no adapter round-0099"),
        ("other", r"does not exist: ask pair-analyzer or pair-coder"),
    ],
)
def test_a_name_that_is_none_is_told_those_that_are(track_dir: Path, asked: str, why: str) -> None:
    async def test(follower: Follower, server: Server) -> None:
        with pytest.raises(ServingError, match=why):
            await model(follower, asked)

    followed(track_dir, test)


def test_an_adapter_has_no_roles(tmp_path: Path) -> None:
    make(tmp_path / TRACK, "round-0001")
    publish.point_current(tmp_path / TRACK, "round-0001")

    async def test(follower: Follower, server: Server) -> None:
        with pytest.raises(ServingError, match="it is one adapter: ask pair"):
            await model(follower, NAMES[1])

    followed(tmp_path / TRACK, test)


def test_before_the_first_promotion_every_role_is_the_base(tmp_path: Path) -> None:
    """As in training."""
    (tmp_path / TRACK).mkdir()

    async def test(follower: Follower, server: Server) -> None:
        assert [await model(follower, name) for name in NAMES] == ["base", "base"]

    followed(tmp_path / TRACK, test)


def test_the_names_that_can_be_asked_are_listed(track_dir: Path) -> None:
    async def test(follower: Follower, server: Server) -> None:
        rounds = [f"{name}@{each}" for each in ("round-0001", "round-0002") for name in NAMES]
        assert follower.models() == [*NAMES, "base", *rounds]

    followed(track_dir, test)


def test_adapters_of_another_track_are_left_alone(track_dir: Path) -> None:
    """Though its name begins like this one's with a role behind it."""
    server = Server()
    server.loaded = {f"{TRACK}-coder@round-0002": "/old", f"{TRACK}-other@round-0002": "/theirs"}

    async def test(follower: Follower, server: Server) -> None:
        assert set(server.loaded) == {*(f"{name}@round-0001" for name in NAMES), f"{TRACK}-other@round-0002"}

    followed(track_dir, test, server)


def test_a_rank_of_any_role_counts(track_dir: Path) -> None:
    make_team(track_dir, "round-0003", r=64)
    with pytest.raises(ServingError, match="SERVE_MAX_LORA_RANK=64"):
        open_adapter(track_dir, "round-0003", 16)


def parity(role: str) -> Parity:
    return Parity("2026-01-01T00:00:00+00:00", f"round-0002/{role}", "nf4", "bfloat16", "bfloat16", 8,
                  (Leg("merged", 4, 3, 2, 0.1, 0.01),))  # fmt: skip


def test_a_team_goes_live_when_every_role_was_measured(track_dir: Path) -> None:
    """Where that is asked."""

    async def test(follower: Follower, server: Server) -> None:
        publish.point_current(track_dir, "round-0002")
        for role in ("analyzer", "coder"):
            assert not follower.ready
            record.write(track_dir, f"round-0002/{role}", parity(role))
            await now(follower)
        assert follower.status()["serving"] == "round-0002"
        assert "analyzer merged 3/4, coder merged 3/4" in follower.status()["parity"]

    followed(track_dir, test, policy=Policy(16, without_parity=False))


def test_no_reader_ever_gets_a_mixed_pair(track_dir: Path) -> None:
    """While champions come and go: both names stand for one release at any moment."""
    make_team(track_dir, "round-0003", ("planner", "analyzer", "coder"))

    async def test(follower: Follower, server: Server) -> None:
        app = create_app(follower, server.backend(), follow=False)
        seen: set[tuple[str, str]] = set()
        stopped = asyncio.Event()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://front") as client:

            async def answer(asked: str) -> str:
                found = await client.post("/v1/completions", json={"model": asked, "prompt": "x"})
                assert found.status_code == 200, found.text
                named = found.headers["x-ratchet-adapter"].partition(" ")[0]
                assert named == found.json()["model"] or named == "base"
                return str(found.json()["model"])

            async def read() -> None:
                while not stopped.is_set():
                    async with follower.answering(NAMES[0]) as first, follower.answering(NAMES[1]) as second:
                        assert first.adapter == second.adapter
                    analysed = await answer(NAMES[0])
                    programmed = await answer(analysed.replace("-analyzer", "-coder"))
                    assert analysed.partition("@")[2] == programmed.partition("@")[2]
                    seen.add((analysed, programmed))

            readers = [asyncio.create_task(read()) for _ in range(READERS)]
            for number in range(MOVES):
                publish.follow(track_dir, (None, "round-0001", "round-0002", "round-0003")[number % 4])
                await now(follower)
                await asyncio.sleep(0)
            stopped.set()
            await asyncio.gather(*readers)
        assert len(seen) >= 4
        await now(follower)

    followed(track_dir, test)
