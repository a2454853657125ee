"""What a chat template puts around a question and its answer."""

from dataclasses import dataclass

from services.core.errors import ConfigurationError
from services.trainer.samples.encoder import Encoder

QUESTION, ANSWER = "RatchetsQuestion", "RatchetsAnswer"  # no template strips, escapes or divides these


@dataclass(frozen=True)
class Frame:
    """A sample is before + question + between, which is the prompt, then lead + answer + after."""

    before: list[int]
    between: list[int]
    lead: list[int]  # what the template writes between its generation prompt and the answer
    after: list[int]  # the end of the turn

    @property
    def parts(self) -> tuple[list[int], ...]:
        return self.before, self.between, self.lead, self.after

    @property
    def tokens(self) -> int:
        return sum(map(len, self.parts))


def frame(encoder: Encoder) -> Frame:
    """From the template rendered around placeholders: what it does to a text it cannot do to somebody's code.

    The loss needs no generation markers then: it is on what follows the generation prompt. A default
    system prompt and a BOS token are part of `before`. Raises ConfigurationError for a template that does
    not continue its own generation prompt with the answer, or that there is none.
    """
    tokenizer = encoder.tokenizer
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigurationError(
            f"{encoder.name} has no chat template: completion pairs need an instruct model"
        )
    question = {"role": "user", "content": QUESTION}
    answer = {"role": "assistant", "content": ANSWER}
    prompt = tokenizer.apply_chat_template([question], tokenize=False, add_generation_prompt=True)
    whole = tokenizer.apply_chat_template([question, answer], tokenize=False)
    if not whole.startswith(prompt) or prompt.count(QUESTION) != 1 or whole.count(ANSWER) != 1:
        raise ConfigurationError(
            f"the chat template of {encoder.name} does not continue its own prompt with the assistant's text:"
            " completion pairs need a model whose template does (an instruct model)"
        )
    before, _, between = prompt.partition(QUESTION)
    lead, _, after = whole[len(prompt) :].partition(ANSWER)
    end = encoder.marked(after.rstrip()) or [encoder.end]  # no turn after this one: no line break to learn
    return Frame(encoder.marked(before), encoder.marked(between), encoder.marked(lead), end)
