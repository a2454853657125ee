"""A team: one shared base, an adapter a role, and a value head.

The base is loaded once, in bf16 or NF4, and never changed. Who acts is a matter of which adapter its layers
use; with none of them it is the reference, and what the critic sees.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftConfig, get_peft_model, get_peft_model_state_dict
from peft.tuners.lora.layer import LoraLayer
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.utils.checkpoint import checkpoint

from services.core.errors import ConfigurationError, RoundError
from services.trainer import vetting
from services.trainer.engine import attention, fusing, switched
from services.trainer.engine.distributed import causal_lm_of
from services.trainer.generation import Turns
from services.trainer.model import adapters
from services.trainer.recipes.recipe import Recipe
from services.trainer.recipes.reinforcement import section
from services.trainer.reinforcement import decoded
from services.trainer.reinforcement.critic import ValueHead
from services.trainer.reinforcement.profiles import Profile

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # of a role's folder, as PEFT names them
CRITIC = Path("critic", "value_head.safetensors")


class Team:
    """Agents that share a base, and always in evaluation mode: who learns is who wrote, without dropout."""

    def __init__(self, model: Any, tokenizer: Any, roles: Sequence[str], critic: ValueHead | None) -> None:
        """model: a PeftModel with an adapter of each role's name; see `fresh` and `load`."""
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.roles = tuple(roles)
        self.critic = critic
        self.most_tokens: int | None = None  # in one pass at once, as far as was found out; see `room`
        self.recomputes = False  # activations of decoder layers in the backward pass, to save memory
        self.causal_lm: Any = causal_lm_of(model)
        self.device: torch.device = self.causal_lm.device
        self._acting: str | None = None
        self._turns: dict[str | None, Turns] = {}
        self._layers = switched.switch(model, self.causal_lm.get_input_embeddings().weight.dtype)
        adapted = sum(isinstance(part, LoraLayer) for part in model.modules())
        self._acts_in_place = len(self._layers) == adapted
        self._trained = [one for name, one in model.named_parameters() if "lora_" in name]
        self._thaw()
        if self.device.type == "cuda":
            fusing.fuse(self.causal_lm)
        for layer in self.causal_lm.base_model.layers:
            layer.forward = self._recomputing(layer.forward)
        self._turn_to(self.roles[0])

    @classmethod
    def fresh(cls, base: Any, tokenizer: Any, recipe: Recipe, profiles: Sequence[Profile]) -> "Team":
        """The base with an untrained adapter a role, which change nothing yet; base: from `model.load_base`.

        Raises ConfigurationError for a target module that is not in the architecture, a kind of adapter
        that teams cannot have, and a role that no adapter can be called.
        """
        _check_recipe(recipe)
        config = adapters.config_of(base, recipe)
        return cls._made(
            base, tokenizer, recipe, {profile.role: copy.deepcopy(config) for profile in profiles}
        )

    @classmethod
    def load(
        cls, base: Any, tokenizer: Any, recipe: Recipe, profiles: Sequence[Profile], folder: Path
    ) -> "Team":
        """The base with the adapters of a published team or of a checkpoint, to act or to go on from.

        Raises ConfigurationError when the folder has other roles, UnsafeAdapterError for adapters of another
        base or that do harm, RoundError for damaged files.
        """
        _check_recipe(recipe)
        roles = [profile.role for profile in profiles]
        there = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
        if there != sorted(roles):
            raise ConfigurationError(
                f"{folder} has adapters of {', '.join(there) or 'no role'}: expected {', '.join(roles)}, the"
                " roles of the recipe's profiles. Give the recipe a new name, which begins a track of its own"
            )
        named = recipe.base_model if base.name_or_path else None
        for role in roles:
            vetting.vet(folder / role, named, base.config.to_dict())
        configs = {role: PeftConfig.from_pretrained(str(folder / role)) for role in roles}
        if len({config.r for config in configs.values()}) > 1:
            raise ConfigurationError(
                f"{folder} has adapters of ranks {[one.r for one in configs.values()]}: expected one rank"
            )
        for config in configs.values():
            config.inference_mode = False
        team = cls._made(base, tokenizer, recipe, configs)
        team.restore(folder)
        return team

    @classmethod
    def _made(cls, base: Any, tokenizer: Any, recipe: Recipe, configs: Mapping[str, LoraConfig]) -> "Team":
        base.requires_grad_(requires_grad=False)
        decoded.decode(base)
        base.set_attn_implementation(attention.register(flash_attn=recipe.use_flash_attention))
        (first, config), *others = configs.items()
        with torch.random.fork_rng(devices=[base.device] if base.device.type == "cuda" else []):
            torch.manual_seed(recipe.seed)
            model = get_peft_model(base, config, adapter_name=first)
            for role, each in others:
                each.base_model_name_or_path = config.base_model_name_or_path
                model.add_adapter(role, each)
        if isinstance(base.get_output_embeddings(), LoraLayer):
            raise ConfigurationError(
                "target_modules has the output layer, whose logits are made in parts: expected layers below"
            )
        critic = None
        if section(recipe).algorithm != "grpo":
            critic = ValueHead(base.config.get_text_config().hidden_size, recipe.seed).to(base.device)
        team = cls(model, tokenizer, tuple(configs), critic)
        team.recomputes = recipe.recomputation in {"full", "selective"}
        return team

    def save(self, folder: Path) -> None:
        """<role>/adapter_config.json and adapter_model.safetensors as PEFT has them, critic/ beside them."""
        for role in self.roles:
            (folder / role).mkdir(parents=True, exist_ok=True)
            config = copy.copy(self.model.peft_config[role])
            config.inference_mode = True
            config.save_pretrained(str(folder / role))
            weights = {name: tensor.contiguous() for name, tensor in self._weights(role).items()}
            save_file(weights, folder / role / WEIGHTS, metadata={"format": "pt"})
        if self.critic is not None:
            (folder / CRITIC).parent.mkdir(parents=True, exist_ok=True)
            save_file(self.critic.state_dict(), folder / CRITIC, metadata={"format": "pt"})

    @torch.no_grad()
    def restore(self, folder: Path) -> None:
        """What `save` wrote, copied into this team's own tensors; without a file the value head stays.

        Raises RoundError for a file that is missing, damaged, or of other shapes.
        """
        for role in self.roles:
            _copy(folder / role / WEIGHTS, self._weights(role))
        if self.critic is not None and (folder / CRITIC).is_file():
            _copy(folder / CRITIC, self.critic.state_dict())
        self._turn_to(self._acting or self.roles[0])

    @contextmanager
    def acting(self, role: str) -> Iterator[None]:
        """This role's adapter alone is used, as it is now.

        Call `backward` in here: layers that are computed again use the adapter that acts at that time.
        """
        self._check(role)
        before, self._acting = self._acting, role
        self._turn_to(role)
        try:
            yield
        finally:
            self._acting = before
            if before is not None:
                self._turn_to(before)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """No adapter is used: the reference policy, and the critic's features."""
        self.model.base_model.disable_adapter_layers()
        try:
            yield
        finally:
            self.model.base_model.enable_adapter_layers()
            self._thaw()

    def turns_of(self, role: str | None) -> Turns:
        """What writing as this role, or at rest (None), keeps from one rollout to the next.

        Roles share it: whoever acts, its adapter lies in the same place. Not so with DoRA's layers.
        """
        if role is not None and self._acts_in_place:
            role = self.roles[0]
        return self._turns.setdefault(role, Turns(self.causal_lm))

    def forget_turns(self) -> bool:
        """Give back the memory that writing keeps; whether there was any."""
        had = [turns.forget() for turns in self._turns.values()]
        return any(had)

    def parameters_of(self, role: str) -> dict[str, torch.nn.Parameter]:
        """The role's adapter by name, float32. Raises ConfigurationError for a role of no one here."""
        self._check(role)
        mine = f".{role}."
        return {name: one for name, one in self.model.named_parameters() if _is_of(name, mine)}

    def _weights(self, role: str) -> dict[str, torch.Tensor]:
        """The role's adapter by the names it is published under; the very tensors, no copies."""
        weights = get_peft_model_state_dict(self.model, adapter_name=role, save_embedding_layers=False)
        return dict(weights)

    def _turn_to(self, role: str) -> None:
        if not self._acts_in_place:
            self.model.set_adapter(role)
            self._thaw()
        switched.turn_to(self._layers, role)

    def _thaw(self) -> None:
        """PEFT freezes every adapter but the active one: all of them are trained here."""
        for parameter in self._trained:
            parameter.requires_grad_(requires_grad=True)

    def _check(self, role: str) -> None:
        if role not in self.roles:
            raise ConfigurationError(f"role {role!r} is not in the team: it has {', '.join(self.roles)}")

    def _recomputing(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if self.recomputes and torch.is_grad_enabled():
                return checkpoint(forward, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)
            return forward(*args, **kwargs)

        return run


def _check_recipe(recipe: Recipe) -> None:
    if recipe.method == "full":
        raise ConfigurationError("method full: a team has adapters on one base: say lora or qlora")
    if recipe.init_lora_weights == "pissa":
        raise ConfigurationError(
            "init_lora_weights pissa: every role would take another part from the base they share, which is"
            " also the reference: say default"
        )


def _is_of(name: str, mine: str) -> bool:
    return "lora_" in name and mine in name[name.index("lora_") :]


def _copy(path: Path, targets: Mapping[str, torch.Tensor]) -> None:
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as exc:
        raise RoundError(f"{path} cannot be read: {exc}; take an older checkpoint or release") from exc
    wanted = {name: tuple(tensor.shape) for name, tensor in targets.items()}
    if wanted != {name: tuple(tensor.shape) for name, tensor in found.items()}:
        raise RoundError(f"{path} has other tensors than this team: it is of another base, rank or recipe")
    for name, tensor in targets.items():
        tensor.copy_(found[name])
