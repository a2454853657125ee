"""Names of models: what each means, and that nothing unsafe or damaged is handed on."""

import shutil
from pathlib import Path

import pytest

from services.core.errors import ConfigurationError, ModelNotFoundError, PublishError, UnsafeAdapterError
from services.trainer import publish, subjects
from tests import tiny_model as tiny
from tests.published_adapter import ROUND, Published, published


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Published:
    home = tmp_path_factory.mktemp("home")
    return published(home, tiny.make(home / "model"))


@pytest.mark.parametrize("name", ["champion", "tiny", "tiny/current", f"tiny/{ROUND}", ROUND])
def test_a_published_adapter_has_many_names(made: Published, name: str) -> None:
    found = subjects.resolve(name, made.settings)
    assert (found.kind, found.folder, found.recipe) == ("adapter", made.folder, made.recipe)
    assert found.name == name


def test_base_is_the_model_without_an_adapter(made: Published) -> None:
    found = subjects.resolve("base", made.settings)
    assert (found.kind, found.folder, found.recipe.base_model) == ("base", None, made.recipe.base_model)


def test_a_folder_of_another_tool_goes_onto_the_recipes_base(made: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(made.folder, tmp_path / "theirs")
    (folder / publish.MANIFEST).unlink()
    found = subjects.resolve(str(folder), made.settings)
    assert (found.kind, found.manifest, found.recipe.base_model) == ("adapter", None, made.recipe.base_model)


def test_a_folder_with_a_whole_model_is_one(made: Published) -> None:
    assert subjects.resolve(made.recipe.base_model, made.settings).kind == "model"


def test_an_adapter_of_another_track_keeps_its_recipe(made: Published, tmp_path: Path) -> None:
    other = published(tmp_path, Path(made.recipe.base_model), name="other", lora_r=2)
    found = subjects.resolve("other", other.settings.model_copy(update={"recipe": made.settings.recipe}))
    assert (found.recipe.name, found.recipe.lora_r) == ("other", 2)


def test_a_folder_that_could_run_code_is_refused(made: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(made.folder, tmp_path / "theirs")
    (folder / publish.MANIFEST).unlink()
    (folder / "adapter_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UnsafeAdapterError, match=r"adapter_model\.bin"):
        subjects.resolve(str(folder), made.settings)


def test_a_changed_file_is_refused(made: Published, tmp_path: Path) -> None:
    folder = shutil.copytree(made.folder, tmp_path / "copy")
    config = folder / "adapter_config.json"
    config.write_text(config.read_text() + "\n")
    with pytest.raises(PublishError, match=r"adapter_config\.json is changed"):
        subjects.resolve(str(folder), made.settings)


@pytest.mark.parametrize("name", ["chmpion", "tiny/round-0009", "..", "../tiny", "", "tiny/../tiny"])
def test_other_names_are_refused_with_those_that_are_possible(made: Published, name: str) -> None:
    with pytest.raises((ConfigurationError, ModelNotFoundError, PublishError)):
        subjects.resolve(name, made.settings)


def test_without_a_champion_it_is_said_what_to_do(made: Published, tmp_path: Path) -> None:
    settings = made.settings.model_copy(update={"adapters_dir": tmp_path})
    with pytest.raises(ConfigurationError, match=r"tiny has no champion .*ratchet up.*`base`"):
        subjects.resolve("champion", settings)
