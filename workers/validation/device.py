"""Where an engine puts weights after it read them, as far as a validation needs it: a place to copy bytes to."""

from importlib.util import find_spec
from typing import Protocol


class Device(Protocol):
    """A device of the machine that validates, such as `cuda:0`."""

    @property
    def name(self) -> str:
        """What the device is called in a report."""

    def copy(self, block: memoryview) -> None:
        """Copy the bytes to the device and return when they are there; they need not stay."""


def cuda_device() -> Device | None:
    """The first CUDA device, or None where there is none or no torch. Imports torch, which takes seconds."""
    if find_spec("torch") is None:
        return None
    import torch  # noqa: PLC0415 - it takes seconds, and the command line goes without it

    return TorchDevice("cuda:0") if torch.cuda.is_available() else None


class TorchDevice:
    """A device that torch knows by `name`."""

    def __init__(self, name: str) -> None:
        """Take the name; the device is used from the first copy on."""
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def copy(self, block: memoryview) -> None:
        import torch  # noqa: PLC0415 - whoever has such a device has torch

        torch.frombuffer(block, dtype=torch.uint8).to(self._name, copy=True)
        if self._name.startswith("cuda"):
            torch.cuda.synchronize(self._name)
