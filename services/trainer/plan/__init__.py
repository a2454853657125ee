"""The memory planner: peak memory and speed of a recipe on a device, and the fastest plan that fits.

Pure arithmetic over a model's shape, without torch; docs/explanation/memory.md says how it is made.
"""

from services.trainer.plan.calibration import CALIBRATION, Calibration
from services.trainer.plan.candidates import Plan, priced
from services.trainer.plan.choose import alternatives, plan
from services.trainer.plan.flops import flops_per_token
from services.trainer.plan.hardware import Hardware, peak_flops
from services.trainer.plan.job import Job
from services.trainer.plan.memory import Memory
from services.trainer.plan.shape import Shape

__all__ = [
    "CALIBRATION",
    "Calibration",
    "Hardware",
    "Job",
    "Memory",
    "Plan",
    "Shape",
    "alternatives",
    "flops_per_token",
    "peak_flops",
    "plan",
    "priced",
]
