import json
from pathlib import Path

from deploy.demo.left_to_do import make_milder


def test_what_waits_has_the_trained_weights_at_a_smaller_scale(tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    trained.mkdir()
    (trained / "adapter_config.json").write_text(json.dumps({"r": 8, "lora_alpha": 16}))
    (trained / "adapter_model.safetensors").write_bytes(b"weights")
    milder = make_milder(trained, tmp_path / "milder")
    assert json.loads((milder / "adapter_config.json").read_text()) == {"r": 8, "lora_alpha": 12}
    assert (milder / "adapter_model.safetensors").read_bytes() == b"weights"
    assert make_milder(trained, milder) == milder
