"""What is planned: a recipe for a model on some hardware, and what follows from these alone."""

from dataclasses import dataclass

from services.trainer.plan.calibration import CALIBRATION, Calibration
from services.trainer.plan.flops import one_product
from services.trainer.plan.hardware import Hardware
from services.trainer.plan.shape import Shape
from services.trainer.recipes.recipe import Recipe

NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)  # 4 bits, 8 for 64 values, 32 for 256 of those (QLoRA, section 3)
FP32 = 4  # bytes
BLOCK = 256  # values of AdamW8bit that share a float32 scale (Dettmers et al., 2022, section 2.1)
SHARDED = ("fsdp2", "zero2", "zero3")


@dataclass(frozen=True)
class Job:
    """A plan's question."""

    shape: Shape
    recipe: Recipe
    hardware: Hardware
    mean_document_tokens: float
    calibration: Calibration = CALIBRATION

    @property
    def is_full(self) -> bool:
        return self.recipe.method == "full"

    @property
    def way(self) -> str:
        """alone, ddp or one of SHARDED, as services/trainer/engine/sharing.py decides it."""
        wanted = self.recipe.distributed
        alone = self.hardware.devices == 1
        if self.is_full:
            if alone and self.hardware.is_cpu:
                return "alone"
            return wanted if wanted in SHARDED else "fsdp2"
        if alone:
            return "alone"
        return wanted if wanted in SHARDED and wanted != "zero2" else "ddp"

    @property
    def weights_are_sharded(self) -> bool:
        return self.way in SHARDED

    @property
    def keeps_gathered(self) -> bool:
        """Whether whole weights stay through a step, as they do in ZeRO-2 (engine/sharded.py)."""
        return self.way == "zero2"

    @property
    def shards(self) -> int:
        """Parts that what is trained is divided into; adapters are whole on every device."""
        return self.hardware.devices if self.weights_are_sharded and self.is_full else 1

    @property
    def compute_bytes(self) -> int:
        """Of an activation: bf16 on a GPU, float32 on the CPU."""
        return FP32 if self.hardware.is_cpu else 2

    @property
    def moments_bytes(self) -> float:
        """Of Adam's two moments, a trainable parameter."""
        eight_bit = self.recipe.optimizer == "adamw_8bit" or (
            self.recipe.optimizer == "auto" and not self.hardware.is_cpu
        )
        return 2 * (1 + FP32 / BLOCK) if eight_bit else 2 * FP32

    @property
    def linear_bytes(self) -> float:
        """Of a parameter of the layers' matrices, as the frozen base stores it."""
        return NF4_BYTES if self.recipe.method == "qlora" else self.compute_bytes

    @property
    def trainable(self) -> int:
        return self.shape.parameters if self.is_full else self.shape.adapter(self.recipe)

    @property
    def adapted_linear(self) -> int:
        """Parameters of all layers' matrices that have an adapter."""
        return self.shape.layers * sum(
            inputs * outputs for inputs, outputs in self.shape.targets(self.recipe).values()
        )

    @property
    def can_keep_less(self) -> bool:
        """Whether a layer may keep a share of its activations: the compiler's choice, so only compiled."""
        return (
            self.recipe.compile
            and not self.hardware.is_cpu
            and self.recipe.recomputation in {"auto", "selective"}
        )

    @property
    def can_keep_merged(self) -> bool:
        """Whether merged weights may stay from step to step: one product, whole weights."""
        return one_product(self.recipe) and not self.weights_are_sharded
