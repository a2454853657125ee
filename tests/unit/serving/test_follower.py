"""The follower: what is live follows `current`, and nobody is left without an answer."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.core.errors import ServingError
from services.serving import follower as following
from services.serving.backend import BackendUnavailableError
from services.serving.follower import Follower
from services.serving.shelf import Policy
from services.trainer import publish, withdrawn
from services.trainer.parity import record
from services.trainer.parity.record import Parity
from tests.unit.serving.published import ANYTHING, Server, followed, make, model, now, two

TRACK = "tiny"


@pytest.fixture
def track_dir(tmp_path: Path) -> Path:
    """Two published adapters; the first is the champion."""
    return two(tmp_path / TRACK, make)


def test_the_champion_is_loaded_from_its_real_folder(track_dir: Path) -> None:
    """Not through `current`, which moves."""

    async def test(follower: Follower, server: Server) -> None:
        assert await model(follower, TRACK) == "tiny@round-0001"
        assert server.loaded == {"tiny@round-0001": str((track_dir / "round-0001").resolve())}

    followed(track_dir, test)


def test_a_promotion_is_live_and_the_one_before_unloaded(track_dir: Path) -> None:
    """At the next look."""

    async def test(follower: Follower, server: Server) -> None:
        publish.point_current(track_dir, "round-0002")
        await now(follower)
        assert await model(follower, TRACK) == "tiny@round-0002"
        assert set(server.loaded) == {"tiny@round-0002"}

    followed(track_dir, test)


def test_an_answer_under_way_keeps_its_adapter_loaded(track_dir: Path) -> None:
    """Until it is complete."""

    async def test(follower: Follower, server: Server) -> None:
        async with follower.answering(TRACK) as who:
            publish.point_current(track_dir, "round-0002")
            await now(follower)
            assert who.model in server.loaded
            assert await model(follower, TRACK) == "tiny@round-0002"
        await now(follower)
        assert set(server.loaded) == {"tiny@round-0002"}

    followed(track_dir, test)


def test_a_rollback_to_the_base_unloads_the_adapter(track_dir: Path) -> None:
    """The track's name then stands for the base model."""

    async def test(follower: Follower, server: Server) -> None:
        publish.follow(track_dir, None)
        await now(follower)
        assert (await model(follower, TRACK), server.loaded) == ("base", {})
        assert follower.status()["serving"] == "base"

    followed(track_dir, test)


def test_an_adapter_that_is_not_loaded_leaves_the_one_before(track_dir: Path) -> None:
    """The status says why; it is tried again later."""

    async def test(follower: Follower, server: Server) -> None:
        server.refuses = {"round-0002"}
        publish.point_current(track_dir, "round-0002")
        await now(follower)
        assert await model(follower, TRACK) == "tiny@round-0001"
        status = follower.status()
        assert (status["status"], status["serving"], status["current"]) == (
            "behind", "round-0001", "round-0002",
        )  # fmt: skip
        assert "greater than max_lora_rank" in status["problem"]
        server.refuses = set()
        await now(follower)
        assert await model(follower, TRACK) == "tiny@round-0002"
        assert follower.status()["status"] == "ok"

    followed(track_dir, test)


def test_a_rank_above_the_servers_is_refused_before_it_is_asked(track_dir: Path) -> None:
    """With what to set."""
    make(track_dir, "round-0003", r=64)

    async def test(follower: Follower, server: Server) -> None:
        publish.point_current(track_dir, "round-0003")
        await now(follower)
        assert "SERVE_MAX_LORA_RANK=64" in follower.status()["problem"]
        assert set(server.loaded) == {"tiny@round-0001"}

    followed(track_dir, test)


def test_a_whole_model_is_refused(track_dir: Path) -> None:
    """Only adapters are exchanged."""
    make(track_dir, "round-0003", kind="model")

    async def test(follower: Follower, server: Server) -> None:
        publish.point_current(track_dir, "round-0003")
        await now(follower)
        assert "whole model" in follower.status()["problem"]

    followed(track_dir, test)


def test_a_damaged_adapter_is_refused(track_dir: Path) -> None:
    """Its hashes are looked at before the server is told of it."""
    config = track_dir / "round-0002" / "adapter_config.json"
    config.write_text(config.read_text(encoding="utf-8").replace("16", "17"), encoding="utf-8")

    async def test(follower: Follower, server: Server) -> None:
        publish.point_current(track_dir, "round-0002")
        await now(follower)
        assert "adapter_config.json is changed" in follower.status()["problem"]
        assert await model(follower, TRACK) == "tiny@round-0001"

    followed(track_dir, test)


def test_an_adapter_of_another_base_is_refused(track_dir: Path) -> None:
    """It would answer nonsense."""

    async def test(follower: Follower, server: Server) -> None:
        with pytest.raises(BackendUnavailableError, match=r"an adapter of org/model, and .* org/other"):
            await model(follower, TRACK)

    followed(track_dir, test, Server(root="org/other"))


def test_a_server_that_was_started_again_gets_its_adapter_back(track_dir: Path) -> None:
    """What it had loaded is gone; the follower notices."""

    async def test(follower: Follower, server: Server) -> None:
        server.loaded = {}
        await now(follower)
        assert set(server.loaded) == {"tiny@round-0001"}

    followed(track_dir, test)


def test_a_server_that_is_away_is_said_to_be(track_dir: Path) -> None:
    """And found again."""

    async def test(follower: Follower, server: Server) -> None:
        server.away = True
        await now(follower)
        assert (follower.ready, follower.status()["status"]) == (False, "unavailable")
        server.away = False
        await now(follower)
        assert follower.ready

    followed(track_dir, test)


def test_what_an_earlier_front_had_loaded_is_unloaded(track_dir: Path) -> None:
    """But for the champion, and for what is none of ours."""
    server = Server()
    server.loaded = {"tiny@round-0002": "/gone", "tiny@round-0001": "/x", "other@round-0002": "/y"}

    async def test(follower: Follower, server: Server) -> None:
        assert set(server.loaded) == {"tiny@round-0001", "other@round-0002"}

    followed(track_dir, test, server)


def test_before_anything_is_live_nobody_answers(track_dir: Path) -> None:
    """Least of all the base model in the champion's name."""

    async def test() -> None:
        follower = Follower(track_dir, Server().backend(), ANYTHING)
        with pytest.raises(BackendUnavailableError, match="not served yet"):
            await model(follower, TRACK)

    asyncio.run(test())


def test_a_round_that_is_asked_for_stays_loaded_for_a_while(
    track_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And goes when nobody asks again."""

    async def test(follower: Follower, server: Server) -> None:
        assert await model(follower, "tiny@round-0002") == "tiny@round-0002"
        await now(follower)
        assert set(server.loaded) == {"tiny@round-0001", "tiny@round-0002"}
        follower._shelf.loaded["round-0002"].until = time.monotonic()
        await now(follower)
        assert set(server.loaded) == {"tiny@round-0001"}

    followed(track_dir, test)


@pytest.mark.parametrize(
    "asked", ["other", "tiny@", "tiny@round-0099", "tiny@../tiny", "tiny@current", "gpt-4"]
)
def test_a_name_that_is_none_is_refused(track_dir: Path, asked: str) -> None:
    """Nothing but published rounds of the track, the track and base."""

    async def test(follower: Follower, server: Server) -> None:
        with pytest.raises(ServingError, match=r"does not exist|has no adapter"):
            await model(follower, asked)

    followed(track_dir, test)


def test_a_withdrawn_adapter_answers_by_no_name(track_dir: Path) -> None:
    """Not even when it was loaded; lifted, it answers again."""

    async def test(follower: Follower, server: Server) -> None:
        await model(follower, "tiny@round-0002")
        withdrawn.mark(track_dir, "round-0002", "its code was forgotten")
        with pytest.raises(ServingError, match=r"withdrawn \(its code was forgotten\)"):
            await model(follower, "tiny@round-0002")
        await now(follower)
        assert set(server.loaded) == {"tiny@round-0001"}
        assert "tiny@round-0002" not in follower.models()
        withdrawn.lift(track_dir, "round-0002")
        assert await model(follower, "tiny@round-0002") == "tiny@round-0002"

    followed(track_dir, test)


def test_without_parity_an_adapter_waits_where_the_policy_says_so(track_dir: Path) -> None:
    """Until it is measured."""

    async def test(follower: Follower, server: Server) -> None:
        assert not follower.ready
        assert "ratchet parity round-0001" in follower.status()["problem"]
        record.write(
            track_dir, "round-0001", Parity("2026-01-01T00:00:00+00:00", "x", "nf4", "bf16", "bf16", 8, ())
        )
        await now(follower)
        assert follower.ready
        assert follower.status()["parity"].startswith("parity measured on 2026-01-01")

    followed(track_dir, test, policy=Policy(16, without_parity=False))


@pytest.fixture(scope="module")
def three_adapters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing but `current` ever changes there."""
    folder = tmp_path_factory.mktemp("adapters") / TRACK
    for number in (1, 2, 3):
        make(folder, f"round-{number:04}")
    return folder


MOVES = st.lists(
    st.sampled_from(["round-0001", "round-0002", "round-0003", "base", "refuse", "allow", "restart", "ask"]),
    max_size=12,
)


@settings(max_examples=20, deadline=None)
@given(MOVES)
def test_whatever_happens_the_champion_is_live_in_the_end(three_adapters: Path, moves: list[str]) -> None:
    """Promotions, rollbacks, refusals, servers that start again, in any order."""

    async def test(follower: Follower, server: Server) -> None:
        for move in moves:
            if move == "refuse":
                server.refuses = {"round-0002", "round-0003"}
            elif move == "allow":
                server.refuses = set()
            elif move == "restart":
                server.loaded = {}
            elif move == "ask":
                async with follower.answering(TRACK) as who:
                    await now(follower)
                    assert who.model == "base" or who.model in server.loaded or "restart" in moves
            else:
                publish.follow(track_dir, None if move == "base" else move)
            await now(follower)
            assert follower._live is None or f"tiny@{follower._live}" in server.loaded or server.refuses
        server.refuses = set()
        await now(follower)
        await now(follower)
        link = track_dir / publish.CURRENT
        expected = f"tiny@{link.readlink()}" if link.is_symlink() else "base"
        assert await model(follower, TRACK) == expected
        assert set(server.loaded) == {expected} - {"base"}

    track_dir = three_adapters
    publish.point_current(track_dir, "round-0001")
    followed(track_dir, test)


def test_the_status_is_json(track_dir: Path) -> None:
    """Whoever probes reads it."""

    async def test(follower: Follower, server: Server) -> None:
        status = json.loads(json.dumps(follower.status()))
        assert (status["serving"], status["servable"]) == ("round-0001", False)
        assert status["parity"] == "parity not measured"
        assert following.LOOK_SECONDS < 1

    followed(track_dir, test)
