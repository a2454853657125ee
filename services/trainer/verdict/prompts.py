"""Snippets of a repository as a model is shown them: comments before the code, or blocks of a question."""

from collections.abc import Callable, Sequence

from services.trainer.samples.repositories import COMMENTS, OTHERWISE
from services.trainer.verdict.retrieval import Snippet

SHARE = 1 / 3  # of max_length that snippets may take
MOST_SNIPPETS = 5
LEAST_LINES = 5  # of a snippet that is shown cut
Count = Callable[[str], int]  # tokens of a text


def as_comments(snippets: Sequence[Snippet], language: str, room: int, count: Count) -> str:
    """The snippets as comments in front of code, within `room` tokens; the best one last, nearest to it."""
    opening, closing = COMMENTS.get(language, OTHERWISE)

    def block(snippet: Snippet, lines: Sequence[str]) -> str:
        written = [f"From {snippet.path}:", *lines]
        return "".join(f"{opening}{line}{closing}".rstrip() + "\n" for line in written) + "\n"

    return "".join(_fitting(snippets, block, room, count))


def as_blocks(snippets: Sequence[Snippet], fence: str, room: int, count: Count) -> str:
    """The snippets as fenced blocks of a question, within `room` tokens; the best one last."""

    def block(snippet: Snippet, lines: Sequence[str]) -> str:
        ticks = "`" * max(3, 1 + max(_run_of_ticks(line) for line in lines))
        code = "\n".join(lines)
        return f"From {snippet.path}:\n\n{ticks}{fence}\n{code}\n{ticks}\n\n"

    return "".join(_fitting(snippets, block, room, count))


def _fitting(
    snippets: Sequence[Snippet], block: Callable[[Snippet, Sequence[str]], str], room: int, count: Count
) -> list[str]:
    """The best snippets that fit, worst first. Of the last its end alone: what follows similar code helps."""
    chosen: list[str] = []
    for snippet in snippets[:MOST_SNIPPETS]:
        whole = lines = [line.rstrip() for line in snippet.text.splitlines()]
        while lines and (size := count(block(snippet, lines))) > room:
            lines = lines[max(1, len(lines) - len(lines) * room // size) :]
        if any(lines) and (len(lines) >= LEAST_LINES or lines is whole):
            chosen.append(block(snippet, lines))
            room -= size
    return chosen[::-1]


def _run_of_ticks(line: str) -> int:
    longest = run = 0
    for character in line:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
