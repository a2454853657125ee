"""Rollouts with a writer that says what it is told to, and a sandbox in which the word passes."""

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from services.core.errors import SandboxError
from services.core.sandbox import Outcome, Program
from services.trainer.generation import Completion, Request
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement.profiles import Profile
from services.trainer.reinforcement.rewards import Rewards
from services.trainer.reinforcement.rollout import Rollouts, prompt_tokens
from services.trainer.reinforcement.standing import Standing
from services.trainer.suites.formats import Task

PROFILES = (Profile("analyzer", "Think.", with_answer=False), Profile("coder", "Write.", with_answer=True))
WORD = "right"
END = 7
Say = Callable[[str, tuple[int, ...], int], str]  # role, prompt, sample → text


def task(name: str) -> Task:
    return Task(name, "", name, "", "", "assert f()", "f", "assert")


class FakeWriter:
    """Ids are the text's letters."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.asked: list[tuple[str, list[tuple[int, ...]], list[int], Request]] = []
        self.begun = 0
        self.before_the_last_row: Callable[[], None] = lambda: None

    def begin(self) -> None:
        self.begun += 1

    def write(
        self,
        role: str,
        prompts: Sequence[Sequence[int]],
        counts: Sequence[int],
        request: Request,
        *,
        on_row: Callable[[tuple[int, int], Completion], None],
        on_done: Callable[[int, int], None],
    ) -> list[list[Completion]]:
        self.asked.append((role, [tuple(each) for each in prompts], list(counts), request))
        places = [(prompt, sample) for prompt, count in enumerate(counts) for sample in range(count)]
        written = {}
        for place in reversed(places):  # rows end in any order
            if place == places[0]:
                self.before_the_last_row()
            text = self.say(role, tuple(prompts[place[0]]), place[1])
            ids = tuple(map(ord, text))
            written[place] = Completion(text, ids, finished=True, end=END, logprobs=(-1.0,) * (len(ids) + 1))
            on_row(place, written[place])
            on_done(len(written), len(places))
        return [[written[at, sample] for sample in range(count)] for at, count in enumerate(counts)]


class FakeRunner:
    def __init__(self) -> None:
        self.ran: list[str] = []
        self.heard = threading.Event()

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        self.ran += [each.code for each in programs]
        self.heard.set()
        return [
            Outcome(each.key, WORD in each.code, f"said of {each.code}", each.code.count("r"), 9)
            for each in programs
        ]


def prompting(
    profile: Profile, asked: Task, texts: Sequence[str], program: str | None, result: str | None
) -> list[int]:
    """The words of everything an agent may read."""
    read = [asked.name, *texts, *filter(None, (program, result))]
    return [ord(letter) for letter in f"{profile.role}|" + "|".join(read)]


def words(prompt: Sequence[int]) -> list[str]:
    return "".join(map(chr, prompt)).split("|")


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def make(runner: FakeRunner) -> Any:
    """Rollouts of a writer, with settings."""

    def made(writer: FakeWriter, **settings: Any) -> Rollouts:
        rewards = Rewards(runner, settings.get("reward_type", "binary"))
        return Rollouts(
            SimpleNamespace(), PROFILES, Reinforcement(**settings), Recipe(name="r", base_model="b"),
            rewards, prompting=prompting, extract=lambda _, text: text or None, backend=writer,
        )  # type: ignore[arg-type]  # fmt: skip

    return made


def says(role: str, prompt: tuple[int, ...], sample: int) -> str:
    """The analyzer a plan of the task, the coder what is right for the task named good."""
    name = words(prompt)[1]
    if role == "analyzer":
        return f"plan {name} {sample}"
    return WORD if name == "good" else f"wrong {sample}"


def test_every_agent_writes_once_for_all_episodes_in_order(make: Any) -> None:
    writer = FakeWriter(says)
    make(writer).collect([task("good"), task("bad"), task("ugly")], seed=1)
    assert [(role, len(prompts)) for role, prompts, _, _ in writer.asked] == [("analyzer", 3), ("coder", 3)]


def test_episodes_come_in_the_tasks_order_with_their_actions_in_the_agents(make: Any) -> None:
    tasks = [task("good"), task("bad")]
    episodes = make(FakeWriter(says)).collect(tasks, group_size=2, seed=1)
    assert [each.task for each in episodes] == [tasks[0].key] * 2 + [tasks[1].key] * 2
    assert [each.group for each in episodes] == [0, 0, 1, 1]
    assert [[action.role for action in each.actions] for each in episodes] == [["analyzer", "coder"]] * 4
    assert [each.solved for each in episodes] == [True, True, False, False]
    assert [each.rewards for each in episodes] == [(0.0, 1.0)] * 2 + [(0.0, 0.0)] * 2
    assert episodes[2].result == f"said of {episodes[2].programs[0]}"


def test_an_agent_reads_what_those_before_it_said_in_its_own_episode(make: Any) -> None:
    episodes = make(FakeWriter(says)).collect([task("good"), task("bad")], group_size=2, seed=1)
    for episode in episodes:
        analyzer, coder = episode.actions
        assert words(coder.prompt_ids)[2] == analyzer.text


def test_a_prompt_that_episodes_share_is_read_once_and_answered_by_different_samples(make: Any) -> None:
    writer = FakeWriter(says)
    episodes = make(writer).collect([task("good")], group_size=4, seed=1)
    assert writer.asked[0][2] == [4]
    assert {episode.actions[0].text for episode in episodes} == {f"plan good {number}" for number in range(4)}


def test_a_task_that_is_there_twice_is_two_groups_that_draw_differently(make: Any) -> None:
    writer = FakeWriter(says)
    episodes = make(writer).collect([task("good"), task("good")], seed=1)
    assert writer.asked[0][2] == [2]
    assert [each.group for each in episodes] == [0, 1]
    assert episodes[0].actions[0].text != episodes[1].actions[0].text


def test_actions_have_the_end_token_and_the_log_probabilities(make: Any) -> None:
    (episode,) = make(FakeWriter(says)).collect([task("good")], seed=1)
    for action in episode.actions:
        assert action.ids[-1] == END
        assert action.logprobs is not None
        assert len(action.logprobs) == len(action.ids)
        assert action.finished


def test_a_program_is_tested_while_others_are_written(make: Any, runner: FakeRunner) -> None:
    """The last row is not written before the sandbox has heard of another."""
    writer = FakeWriter(says)
    heard = []

    def before() -> None:
        if writer.asked[-1][0] == "coder":
            heard.append(runner.heard.wait(30))

    writer.before_the_last_row = before
    make(writer).collect([task("bad"), task("good")], seed=1)
    assert heard == [True]


def test_greedy_writes_each_prompt_once_and_records_nothing(make: Any) -> None:
    writer = FakeWriter(says)
    episodes = make(writer).collect([task("good")], seed=1, greedy=True, samples=3)
    assert [counts for _, _, counts, _ in writer.asked] == [[1], [1]]
    assert all((request.temperature, request.logprobs) == (0.0, False) for *_, request in writer.asked)
    assert len(episodes) == 3
    assert len({episode.actions[0].text for episode in episodes}) == 1


def test_what_is_drawn_differs_by_seed_turn_and_role(make: Any) -> None:
    writer = FakeWriter(says)
    rollouts = make(writer, turns=2)
    for seed in (1, 2, 1):
        rollouts.collect([task("bad")], seed=seed)
    seeds = [request.seed for *_, request in writer.asked]
    assert len(set(seeds[:8])) == 8
    assert seeds[:4] == seeds[8:]
    assert writer.begun == 3


def second_time_right(role: str, prompt: tuple[int, ...], sample: int) -> str:
    """Right once the coder has read what the tests said."""
    read = words(prompt)
    if role == "analyzer":
        return f"plan {sample}"
    return WORD if read[1] == "good" or any(word.startswith("said of") for word in read) else "r wrong"


def test_in_the_next_turn_all_agents_read_the_last_program_and_its_result(make: Any) -> None:
    writer = FakeWriter(second_time_right)
    (episode,) = make(writer, turns=3).collect([task("bad")], seed=1)
    assert [(action.role, action.turn) for action in episode.actions] == [
        ("analyzer", 0), ("coder", 0), ("analyzer", 1), ("coder", 1),
    ]  # fmt: skip
    told = "said of r wrong (2 of 9 tests passed)"
    assert words(episode.actions[2].prompt_ids)[2:] == ["r wrong", told]
    assert words(episode.actions[3].prompt_ids)[2:] == ["plan 0", "r wrong", told]
    assert (episode.programs, episode.solved) == (("r wrong", WORD), True)
    assert episode.rewards == (0.0, 0.0, 0.0, 1.0)


def test_who_has_solved_its_task_takes_no_further_turn(make: Any) -> None:
    writer = FakeWriter(second_time_right)
    solved, other = make(writer, turns=2).collect([task("good"), task("bad")], seed=1)
    assert (solved.turns, other.turns) == (1, 2)
    assert [len(prompts) for _, prompts, _, _ in writer.asked] == [2, 2, 1, 1]


def test_an_episode_is_worth_what_its_last_program_is_worth(make: Any) -> None:
    """A turn earns what it adds, so that nothing is gained by solving a part before the whole."""
    writer = FakeWriter(second_time_right)
    (episode,) = make(writer, turns=2, reward_type="continuous").collect([task("bad")], seed=1)
    assert episode.rewards == pytest.approx((0.0, 2 / 9, 0.0, 7 / 9))
    assert episode.reward == pytest.approx(1.0)


def test_an_answer_without_code_is_worth_nothing_and_said(make: Any, runner: FakeRunner) -> None:
    (episode,) = make(FakeWriter(lambda *_: "")).collect([task("good")], seed=1)
    assert (episode.rewards, episode.programs) == ((0.0, 0.0), ("",))
    assert "no code" in episode.result
    assert not runner.ran


def test_progress_counts_actions_and_what_it_raises_goes_through(make: Any) -> None:
    heard: list[Standing] = []
    rollouts = make(FakeWriter(says))
    rollouts.collect([task("good"), task("bad")], seed=1, on_done=heard.append)
    assert [(each.role, each.written, each.of) for each in heard[:6]] == [
        (role, written, 2) for role in ("analyzer", "coder") for written in (0, 1, 2)
    ]

    def interrupt(_: Standing) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        rollouts.collect([task("good")], seed=1, on_done=interrupt)


def test_progress_says_what_the_tested_programs_have_earned(make: Any, runner: FakeRunner) -> None:
    """While the rest is written: here the last row waits until the first one's program has been run."""
    heard: list[Standing] = []
    writer = FakeWriter(lambda role, *_: "plan" if role == "analyzer" else WORD)
    rollouts = make(writer)

    def wait() -> None:
        if writer.asked[-1][0] == "coder":
            assert runner.heard.wait(10)
            for future in rollouts._rewards._known.values():
                future.result()

    writer.before_the_last_row = wait
    rollouts.collect([task("good"), task("bad")], seed=1, on_done=heard.append)
    last = heard[-1]
    assert (last.tested, last.solved, last.earned) == (2, 2, 2.0)
    assert last.episodes == 2
    assert last.tokens == 2 * len("plan") + 2 * len(WORD)


def test_a_sandbox_that_goes_away_ends_the_rollout_with_what_to_do(make: Any, runner: FakeRunner) -> None:
    def gone(_: Sequence[Program]) -> list[Outcome]:
        raise SandboxError("no sandbox answers: start it")

    runner.run = gone  # type: ignore[method-assign]
    with pytest.raises(SandboxError, match="start it"):
        make(FakeWriter(says)).collect([task("good")], seed=1)


def test_figures_say_what_the_last_rollout_cost(make: Any) -> None:
    rollouts = make(FakeWriter(says))
    episodes = rollouts.collect([task("good"), task("good")], seed=1)
    figures = rollouts.figures
    assert (figures.episodes, figures.programs, figures.repeated) == (2, 2, 1)
    assert figures.tokens == sum(episode.tokens for episode in episodes)
    assert figures.tokens_per_second > 0


@pytest.mark.parametrize(("context", "expected"), [(None, 2048), (4096, 2048), (1024, 512), (100, 1)])
def test_a_prompt_leaves_the_answer_its_room_in_the_models_context(
    context: int | None, expected: int
) -> None:
    config = SimpleNamespace(max_position_embeddings=context)
    assert prompt_tokens(config, Reinforcement(context_window=2048, max_new_tokens=512)) == expected
