"""`ratchet serve` as a process: OpenAI's client asks it while its adapters change."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openai import NotFoundError

from services.core.settings import PROJECT
from services.trainer import publish
from services.trainer.parity import record
from tests import served
from tests.served import PROMPT, ROUNDS, Serving, until
from tests.tiny_model import recipe as make_recipe

USERS = 6
pytestmark = pytest.mark.timeout(400)  # the first one waits for the server
DOCUMENT = PROJECT / "docs" / "how-to" / "serve.md"


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> dict[str, str]:
    """Of a home with three adapters of one track that write different things."""
    home = tmp_path_factory.mktemp("served")
    recipe_file = make_recipe(home, tiny_model)
    served.publish_adapters(home, recipe_file, home / "cache", std=0.3)
    return {**served.environment(home, recipe_file, home / "cache"), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def serving(variables: dict[str, str]) -> Iterator[Serving]:
    with served.serving(Path(variables["ADAPTERS_DIR"]) / "tiny", variables) as running:
        yield running


def test_it_says_where_it_is_and_that_parity_was_not_measured(serving: Serving) -> None:
    """Before anything is called servable."""
    assert "serving tiny at http://127.0.0.1:" in serving.said[0]
    assert "round-0001: parity not measured; vLLM takes it" in serving.said[1]
    assert serving.health().json()["servable"] is False


def test_adapters_change_while_requests_run(serving: Serving) -> None:
    """No request fails, each answer is one adapter's from its first token to its last, rollbacks too."""
    alone = dict(serving.ask(f"tiny@{name}") for name in ROUNDS) | dict([serving.ask("base")])
    assert len(set(alone.values())) == len(ROUNDS) + 1

    answers: list[tuple[str, str]] = []
    stop = threading.Event()

    def user() -> None:
        while not stop.is_set():
            answers.append(serving.ask("tiny"))

    with ThreadPoolExecutor(USERS) as pool:
        users = [pool.submit(user) for _ in range(USERS)]
        try:
            for champion in (ROUNDS[1], ROUNDS[2], ROUNDS[0], None, ROUNDS[1], ROUNDS[0]):
                publish.follow(serving.track_dir, champion)
                expected = "base" if champion is None else f"tiny@{champion}"
                until(lambda expected=expected: bool(answers) and answers[-1][0] == expected)
        finally:
            stop.set()
        for each in users:
            each.result()
    assert [said for said in answers if alone[said[0]] != said[1]] == []
    assert {name for name, _ in answers} == set(alone)
    until(lambda: list(serving.health().json()["loaded"].values()).count(0) >= 1)


def test_a_stream_that_has_begun_ends_with_its_adapter(serving: Serving) -> None:
    """Though the champion changes after its first token."""
    _, whole = serving.ask("tiny@round-0001", 64)
    stream = serving.client().completions.create(
        model="tiny", prompt=PROMPT, max_tokens=64, temperature=0, stream=True
    )
    chunks = [next(stream)]
    publish.point_current(serving.track_dir, "round-0003")
    chunks += list(stream)
    assert {chunk.model for chunk in chunks} == {"tiny@round-0001"}
    streamed = "".join(chunk.choices[0].text for chunk in chunks)
    assert streamed == whole.rstrip("\ufffd")  # half a character is not streamed
    until(lambda: serving.health().json()["serving"] == "round-0003")
    publish.point_current(serving.track_dir, "round-0001")
    until(lambda: serving.health().json()["serving"] == "round-0001")


def test_every_answer_names_its_adapter_and_the_hash_of_its_manifest(serving: Serving) -> None:
    """In a header; the name in the answer too."""
    raw = serving.client().chat.completions.with_raw_response.create(
        model="tiny", messages=[{"role": "user", "content": "Write add."}], max_tokens=4
    )
    digest = serving.health().json()["sha256"]
    assert raw.headers["x-ratchet-adapter"] == f"tiny@round-0001 sha256:{digest}"
    assert raw.parse().model == "tiny@round-0001"


def test_a_model_that_is_none_is_an_error_of_the_client(serving: Serving) -> None:
    """As OpenAI's client knows it."""
    with pytest.raises(NotFoundError, match="'gpt-4' does not exist: ask tiny"):
        serving.ask("gpt-4")


def test_the_models_are_listed(serving: Serving) -> None:
    """The track first: it is what one asks."""
    assert [card.id for card in serving.client().models.list()] == [
        "tiny", "base", *(f"tiny@{name}" for name in ROUNDS),
    ]  # fmt: skip


def test_an_adapter_with_wrong_shapes_leaves_the_one_before(serving: Serving) -> None:
    """The server refuses it, and goes on."""
    from safetensors.torch import load_file, save_file

    def write(folder: Path) -> None:
        weights = load_file(serving.track_dir / "round-0002" / "adapter_model.safetensors")
        name = next(name for name in weights if "lora_A" in name)
        weights[name] = weights[name][:, :-1].contiguous()
        save_file(weights, folder / "adapter_model.safetensors")
        config = (serving.track_dir / "round-0002" / "adapter_config.json").read_bytes()
        (folder / "adapter_config.json").write_bytes(config)

    manifest = {"kind": "adapter", "base_model": None, "recipe": {"base_model": "./x"}}
    publish.publish(serving.track_dir, "round-0004", write, manifest)
    publish.point_current(serving.track_dir, "round-0004")
    until(lambda: serving.health().json()["status"] == "behind")
    assert "does not fit" in serving.health().json()["problem"]
    assert serving.ask("tiny")[0] == "tiny@round-0001"
    publish.point_current(serving.track_dir, "round-0001")
    until(lambda: serving.health().json()["status"] == "ok")


def test_the_documented_client_runs(serving: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    """The example in docs/how-to/serve.md, as it stands there but for port and track."""
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    example = example.replace("http://127.0.0.1:8000", serving.url).replace('"demo"', '"tiny"')
    exec(compile(example, str(DOCUMENT), "exec"), {})
    assert capsys.readouterr().out.startswith("tiny@round-0001\n")


def test_parity_is_measured_on_the_running_server_and_kept(
    serving: Serving, variables: dict[str, str]
) -> None:
    """The answers before publishing, merged ones and served ones; then it may be called servable."""
    assert '"in_ledger": false' in served.parity(variables, "round-0001", "--served", serving.url, "--json")
    kept = record.read(serving.track_dir, "round-0001")
    assert kept is not None
    ways = {leg.way: leg for leg in kept.legs}
    assert list(ways) == ["trained", "merged", "served"]
    assert ways["trained"].exact_match == 1
    assert ways["served"].exact_match == 1
    assert ways["merged"].max_log_prob_difference is not None
    until(lambda: serving.health().json()["servable"] is True)
