"""What is asked of a model that writes, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """How to go on with prompts. Temperature 0 takes the likeliest token each time."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0  # nucleus sampling (Holtzman et al. 2020): of the likeliest tokens, this mass
    n: int = 1  # completions of a prompt
    stop: tuple[str, ...] = ()  # a text ends before the first of these
    seed: int = 0
    end: Callable[[str], int | None] | None = None  # where a text so far ends, for what no string says
    seconds: float | None = None  # after which what is being written ends unfinished
    # On a GPU: a token's step as one CUDA graph, where the model can be captured. How, and not what is asked:
    # results that are kept by a request's words are the same with it and without.
    graphs: bool = field(default=True, repr=False)
    # The log-probability of each token written, at the temperature it is drawn at (1 for the likeliest) and
    # without top-p; ids then end with the token in which the text did. The text is the same without.
    logprobs: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1 or self.n < 1:
            raise ValueError(f"{self.n} completions of {self.max_new_tokens} tokens: expected 1 at least")
        if self.temperature < 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                f"temperature {self.temperature}, top_p {self.top_p}: expected at least 0, and above 0 to 1"
            )
        if "" in self.stop:
            raise ValueError("an empty stop string ends every text: leave it out")

    @property
    def looks_at_text(self) -> bool:
        """Whether a text may end by what it says."""
        return bool(self.stop) or self.end is not None

    def ending(self, text: str) -> int | None:
        """Where the text ends, in characters; None while it does not."""
        ends = [at for stop in self.stop if (at := text.find(stop)) >= 0]
        told = None if self.end is None else self.end(text)
        return min(ends if told is None else [*ends, told], default=None)


@dataclass(frozen=True)
class Completion:
    """What was written after a prompt."""

    text: str  # without what ended it
    ids: tuple[int, ...]  # as written, without the token that ended it; of stop strings they are there
    finished: bool  # False when it ran out of tokens or time
    end: int | None = None  # the token that ended it, where one did
    logprobs: tuple[float, ...] | None = None  # of `ids` and then of `end`, in nats; None where not asked for

    @property
    def action(self) -> tuple[int, ...]:
        """All that the model chose: the ids, and the token that ended them."""
        return self.ids if self.end is None else (*self.ids, self.end)
