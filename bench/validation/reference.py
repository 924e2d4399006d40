"""How PEFT reads the text with an adapter on the base: what an engine that applies all of it must come close to."""

import warnings
from pathlib import Path
from typing import Any, Final

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

# Measured between vLLM in bfloat16 and PEFT in float32: 0.03 to 0.11.
TOLERANCE: Final = 0.12


class Reference:
    """The base model in float32, which adapters are put on one after the other."""

    def __init__(self, base_folder: Path, text: str) -> None:
        """Load the base and tokenise the text."""
        transformers_logging.disable_progress_bar()
        transformers_logging.set_verbosity_error()
        self._model: Any = AutoModelForCausalLM.from_pretrained(base_folder, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(base_folder)
        self._ids = tokenizer(text, return_tensors="pt").input_ids

    def read(self, adapter: Path) -> tuple[float, ...]:
        """The log-probability of each token of the text but the first, in nats."""
        with warnings.catch_warnings():
            # Settings newer than PEFT are part of what is tried.
            warnings.simplefilter("ignore")
            wrapped = PeftModel.from_pretrained(self._model, str(adapter))
        try:
            with torch.inference_mode():
                scores = wrapped(self._ids).logits[0, :-1].float().log_softmax(-1)
            return tuple(scores.gather(1, self._ids[0, 1:, None])[:, 0].tolist())
        finally:
            self._model = wrapped.unload()
            # PEFT leaves its mark on a model, and warns of it on the next adapter.
            if hasattr(self._model, "peft_config"):
                del self._model.peft_config
