"""Putting the residency plugin where a vLLM finds it: a folder for its PYTHONPATH, without touching its environment.

    python -m deploy.engine.residency FOLDER

writes the folder and prints the variables to start vLLM with, but for the token.
"""

import argparse
import shutil
import sys
from pathlib import Path

PLUGIN = "lorekeeper_residency"
_SOURCE = Path(__file__).with_name("residency_plugin.py")
_METADATA = "Metadata-Version: 2.1\nName: lorekeeper-vllm\nVersion: 1\n"
_ENTRY_POINTS = f"""\
[vllm.general_plugins]
{PLUGIN} = residency_plugin:add_worker_method

[vllm.endpoint_plugins]
{PLUGIN} = residency_plugin:ResidencyPlugin
"""


def install_plugin(folder: Path) -> Path:
    """Write the plugin into this folder, as an installed distribution of its own; the folder, absolute."""
    distribution = folder / "lorekeeper_vllm-1.dist-info"
    distribution.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_SOURCE, folder / "residency_plugin.py")
    (distribution / "METADATA").write_text(_METADATA)
    (distribution / "entry_points.txt").write_text(_ENTRY_POINTS)
    return folder.absolute()


def plugin_environment(folder: Path) -> dict[str, str]:
    """The variables that make vLLM load the plugin; without LOREKEEPER_RESIDENCY_TOKEN its routes are closed."""
    return {"PYTHONPATH": str(folder), "VLLM_PLUGINS": PLUGIN}


def main() -> int:
    """Write the folder, and print one variable on a line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.engine.residency", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    folder = install_plugin(parser.parse_args().folder)
    for name, value in plugin_environment(folder).items():
        sys.stdout.write(f"{name}={value}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
