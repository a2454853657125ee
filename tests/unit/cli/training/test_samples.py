"""How samples are shown."""

import io

from rich.console import Console

from services.cli.training import samples
from services.trainer.recipes.recipe import Recipe

RECIPE = Recipe(name="t", base_model="./model")
TOKENS = [["a\n", [1], False], ["\tb", [2], False], ["\u202ec\x1b[31m", [3, 4], True], ["d", [5], True]]
ANSWER = {
    "contents": 2, "made": 3,
    "samples": [{"content_id": 7, "kind": "file", "length": 5, "learned": 3, "tokens": TOKENS}],
}  # fmt: skip


def test_without_colours_marks_say_what_is_learned() -> None:
    """And where tokens meet; nothing in the code moves the cursor or turns the line around."""
    heading, body, *_ = (
        text.plain for text in samples.shown(ANSWER, {7: "repo/a.py"}, RECIPE, colours=False)
    )
    assert heading == "1/1  file  repo/a.py  5 tokens, 3 learned"
    assert body == "a↵\n│⇥b⟦\\u202ec\\x1b[31m│d⟧"


def test_with_colours_learned_tokens_are_green_and_neighbours_differ() -> None:
    """The same characters, without marks."""
    _, body, *_ = samples.shown(ANSWER, {}, RECIPE, colours=True)
    assert body.plain == "a↵\n⇥b\\u202ec\\x1b[31md"
    styles = [str(span.style) for span in body.spans]
    assert styles == [samples.GIVEN[0], samples.GIVEN[1], samples.LEARNED[0], samples.LEARNED[1]]
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard", markup=False).print(body)
    assert "\x1b[1;32m" in out.getvalue()


def test_nothing_to_learn_is_said() -> None:
    """A file of five lines makes no pair."""
    texts = [
        text.plain
        for text in samples.shown({"contents": 1, "made": 0, "samples": []}, {}, RECIPE, colours=False)
    ]
    assert "nothing is left to learn" in texts[-1]
