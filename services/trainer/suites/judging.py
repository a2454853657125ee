"""What suites ask: a program that answers it is never trained on, or the suite would measure memory."""

from pathlib import Path

from services.trainer.recipes.recipe import Recipe
from services.trainer.suites import keywords, likelihood, programs
from services.trainer.suites.run import COMPLETION
from services.trainer.tasks.placed import prompt_digest

WITHOUT_FILES = (programs.HUMAN_EVAL, keywords.NAME, COMPLETION)


def digests(recipe: Recipe, benchmarks_dir: Path) -> set[bytes]:
    """`prompt_sha256` of every task of HumanEval, and of the files that the recipe names as suites.

    None for a recipe that trains on no solutions. Raises ConfigurationError as `programs.load` does.
    """
    if not recipe.solutions_share:
        return set()
    named = {name.removesuffix(likelihood.SUFFIX) for name in (recipe.general_suite, *recipe.suites) if name}
    files = named - set(WITHOUT_FILES)
    return {
        prompt_digest(task)
        for name in (programs.HUMAN_EVAL, *sorted(files))
        for task in programs.load(name, benchmarks_dir)
    }
