"""vLLM as the writer of rollouts, where it is installed beside Ratchet.

The adapters go over as files, a folder for each rollout, under a name and a number that are new each time:
vLLM keeps what it has read of a prompt by the adapter's name, so that a name used again would go on from the
weights of the rollout before (vllm-project/vllm#30931, #42125). Written against vLLM 0.22's `LLM`,
`LLMEngine.add_request` and `LoRARequest`; tested with a stand-in, and not run with vLLM itself.
"""

import functools
import importlib
import itertools
import shutil
import tempfile
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.core.errors import ConfigurationError
from services.trainer.engine.distributed import causal_lm_of
from services.trainer.generation import Completion, Request
from services.trainer.generation.writer import ends
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import Reinforcement
from services.trainer.reinforcement.backend import OnDone, OnRow
from services.trainer.samples.chance import draw

if TYPE_CHECKING:
    from services.trainer.reinforcement.team import Team

MEMORY_SHARE = 0.35  # of the GPU for weights, keys and values of vLLM; the team is trained on the same one
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM makes room for
STEPS = 16  # tokens between two words on progress
_numbers = itertools.count(1)  # of adapters and of requests: vLLM wants each once


class VllmWriter:
    """Writes for a team with an engine on the same GPU, in which every role's adapter is loaded."""

    def __init__(self, team: "Team", vllm: Any, engine: Any) -> None:
        """vllm: the module; engine: its LLMEngine, which teams of one base may share."""
        self._team, self._vllm, self._engine = team, vllm, engine
        self._folder = tempfile.TemporaryDirectory(prefix="ratchet-adapters-")
        self._loaded: dict[str, Any] = {}  # role → LoRARequest
        self._ends = ends(causal_lm_of(team.model), team.tokenizer)

    @classmethod
    def of(cls, team: "Team", settings: Reinforcement, recipe: Recipe) -> "VllmWriter":
        """With an engine for the recipe's base. Raises ConfigurationError where vLLM is not installed."""
        try:
            vllm: Any = importlib.import_module("vllm")
            importlib.import_module("vllm.lora.request")
        except ImportError as exc:
            raise ConfigurationError(
                "writer=vllm: vLLM is not installed in this environment: `pip install vllm`, or set"
                " writer=own"
            ) from exc
        engine = _engine(
            vllm.LLM,
            model=causal_lm_of(team.model).name_or_path,
            tokenizer=team.tokenizer.name_or_path,
            quantization="bitsandbytes" if recipe.method == "qlora" else None,
            max_model_len=settings.context_window + settings.max_new_tokens,
            max_loras=len(team.roles),
            max_lora_rank=next((rank for rank in RANKS if rank >= recipe.lora_r), RANKS[-1]),
            seed=recipe.seed,
        )
        return cls(team, vllm, engine)

    def begin(self) -> None:
        """The team's weights as they are now, in the place of those it wrote with before."""
        folder = Path(self._folder.name)
        for before in self._loaded.values():
            self._engine.remove_lora(before.lora_int_id)
        for old in folder.iterdir():
            shutil.rmtree(old)
        numbers = {role: next(_numbers) for role in self._team.roles}
        new = folder / str(max(numbers.values()))
        self._team.save(new)
        request = self._vllm.lora.request.LoRARequest
        self._loaded = {
            role: request(lora_name=f"{role}-{number}", lora_int_id=number, lora_path=str(new / role))
            for role, number in numbers.items()
        }

    def write(
        self,
        role: str,
        prompts: Sequence[Sequence[int]],
        counts: Sequence[int],
        request: Request,
        *,
        on_row: OnRow,
        on_done: OnDone,
    ) -> list[list[Completion]]:
        """See `backend.Backend`. Rows of one prompt are requests of their own, whose prompt is read once.

        When a listener raises, what is not finished is called off.
        """
        waiting: dict[str, tuple[int, int]] = {}
        for prompt, (ids, count) in enumerate(zip(prompts, counts, strict=True)):
            for sample in range(count):
                name = str(next(_numbers))
                waiting[name] = (prompt, sample)
                self._engine.add_request(
                    name,
                    {"prompt_token_ids": list(ids)},
                    self._parameters(request, ids, sample),
                    lora_request=self._loaded[role],
                )
        found: dict[tuple[int, int], Completion] = {}
        steps = 0
        try:
            while waiting:
                for output in self._engine.step():
                    if output.finished:
                        place = waiting.pop(output.request_id)
                        found[place] = _completion(output.outputs[0], self._ends)
                        on_row(place, found[place])
                steps += 1
                if steps % STEPS == 0 or not waiting:
                    on_done(len(found), sum(counts))
        except BaseException:
            self._engine.abort_request(list(waiting))
            raise
        return [[found[prompt, sample] for sample in range(count)] for prompt, count in enumerate(counts)]

    def _parameters(self, request: Request, prompt: Sequence[int], sample: int) -> Any:
        """vLLM's own draws, which belong to a row as ours do: by prompt, seed and number of the sample."""
        return self._vllm.SamplingParams(
            max_tokens=request.max_new_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            stop=list(request.stop),
            stop_token_ids=sorted(self._ends),
            seed=draw(request.seed, array("q", prompt).tobytes(), sample).getrandbits(31),
            logprobs=0 if request.logprobs else None,  # of the token taken alone
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )


@functools.lru_cache(maxsize=1)
def _engine(make: Callable[..., Any], **about: Any) -> Any:
    """The one engine there is; another is made when another base or room is asked for."""
    model = make(
        dtype="bfloat16",
        gpu_memory_utilization=MEMORY_SHARE,
        enable_lora=True,
        enable_prefix_caching=True,
        logprobs_mode="processed_logprobs",  # at the temperature, as `Request.logprobs`
        generation_config="vllm",  # not the model's own defaults
        **about,
    )
    return model.llm_engine


def _completion(output: Any, ends: frozenset[int]) -> Completion:
    """vLLM's CompletionOutput as ours: there the token that ended a text is among its ids."""
    ids, end = list(output.token_ids), None
    logprobs = None
    if output.logprobs is not None:
        logprobs = tuple(each[token].logprob for token, each in zip(ids, output.logprobs, strict=True))
    if ids and ids[-1] in ends:
        end = ids.pop()
    return Completion(output.text, tuple(ids), output.finish_reason == "stop", end, logprobs)
