import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from deploy.demo.made_folders import make_once
from deploy.demo.materials import ensure_adapters, has_adapter
from deploy.demo.recipes import Recipe, adapter_folder, adapter_hash, base_hash
from deploy.demo.voices import BRISK, WARM


def test_each_voice_and_each_number_of_the_recipe_has_its_own_hash() -> None:
    recipe = Recipe()
    hashes = {
        base_hash(),
        adapter_hash(WARM, recipe),
        adapter_hash(BRISK, recipe),
        adapter_hash(WARM, replace(recipe, steps=recipe.steps + 1)),
        adapter_hash(replace(WARM, phrase="Hi!"), recipe),
    }
    assert len(hashes) == 5


def test_adapters_that_are_there_are_not_trained_again(tmp_path: Path) -> None:
    for voice in (WARM, BRISK):
        make_once(adapter_folder(tmp_path, voice), adapter_hash(voice, Recipe()), lambda _folder: None)
    folders, seconds = ensure_adapters(tmp_path, (WARM, BRISK))
    assert folders == {"warm": tmp_path / "adapters" / "warm", "brisk": tmp_path / "adapters" / "brisk"}
    assert seconds == 0
    assert has_adapter(tmp_path, WARM)


def test_the_demo_itself_does_without_torch() -> None:
    code = "import deploy.demo.steps, sys; raise SystemExit(bool({'torch', 'transformers', 'peft'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
