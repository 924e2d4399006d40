from importlib.metadata import DistributionFinder, MetadataPathFinder
from pathlib import Path

from deploy.engine.residency import install_plugin, plugin_environment
from deploy.engine.vllm import VllmSpec


def test_the_folder_is_an_installed_distribution_whose_entry_points_are_there(tmp_path: Path) -> None:
    folder = install_plugin(tmp_path / "plugin")
    install_plugin(folder)
    context = DistributionFinder.Context(path=[str(folder)])
    (found,) = MetadataPathFinder().find_distributions(context)
    points = {(point.group, point.module, point.attr) for point in found.entry_points}
    assert {group for group, _, _ in points} == {"vllm.general_plugins", "vllm.endpoint_plugins"}
    code = (folder / "residency_plugin.py").read_text()
    assert all(module == "residency_plugin" and f" {attr}" in code for _, module, attr in points)


def test_an_engine_has_the_plugin_only_where_it_is_asked_for(tmp_path: Path) -> None:
    spec = VllmSpec(Path("python"), Path("model"), 8100, "base")
    assert not {"VLLM_PLUGINS", "PYTHONPATH", "LOREKEEPER_RESIDENCY_TOKEN"} & spec.environment({}).keys()
    spec = VllmSpec(Path("python"), Path("model"), 8100, "base", plugin=tmp_path, plugin_token="secret")
    wanted = {**plugin_environment(tmp_path), "LOREKEEPER_RESIDENCY_TOKEN": "secret"}
    assert wanted.items() <= spec.environment({}).items()
    assert "secret" not in repr(spec)
