"""What a demo that goes on running leaves for its visitors to do: a version that waits for somebody's approval."""

import json
import shutil
from pathlib import Path

from deploy.demo.bad_uploads import CONFIG, WEIGHTS
from deploy.demo.run import Run, reference
from deploy.demo.uploading import push_candidate
from deploy.demo.voices import WARM


def leave_a_version(run: Run) -> None:
    """Push a milder form of the first version, which nobody has approved yet. Raises DemoFailedError."""
    folder = make_milder(run.adapters[WARM.name], run.folder / "milder")
    version = push_candidate(run, folder)["version"]
    run.screen.did(f"{reference(version)} waits: docs/first-steps.md says how it is approved and rolled back")


def make_milder(trained: Path, folder: Path) -> Path:
    """Write the trained adapter anew into `folder` at three quarters of its scale, and return `folder`.

    It still speaks in its voice, and is not the bytes of any earlier version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((trained / CONFIG).read_text(encoding="utf-8"))
    config["lora_alpha"] = config["lora_alpha"] * 3 // 4
    (folder / CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")
    shutil.copyfile(trained / WEIGHTS, folder / WEIGHTS)
    return folder
