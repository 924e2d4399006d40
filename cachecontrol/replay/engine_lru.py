"""Where an engine keeps its adapters, replayed from what was sent to it: an estimate, since engines don't say.

After vLLM's ``LRUCacheWorkerLoRAManager`` (``vllm/lora``, 0.32): one least-recent order for CPU memory, one for the GPU
slots, which hold a part of the former. A load or a request makes an adapter the most recent of both; what CPU memory
loses leaves its slot too, and keeps its name: the next request reads the files again. An unload forgets the name alone:
the weights take their place until others push them out.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

GPU: Final = "gpu"
CPU: Final = "cpu"
DISK: Final = "disk"

Name = TypeVar("Name")


class EngineLru(Generic[Name]):
    """The two least-recent orders of one engine process; begin anew when its boot id changes.

    ``frees_on_unload``: the engine gives memory back on an unload (``true_unload`` among its capabilities).
    """

    def __init__(self, gpu_slots: int, cpu_slots: int, *, frees_on_unload: bool = False) -> None:
        """Begin empty; an engine holds at least as many in CPU memory as in slots (vLLM refuses less)."""
        self._gpu_slots = max(gpu_slots, 1)
        self._cpu_slots = max(cpu_slots, self._gpu_slots)
        self._frees_on_unload = frees_on_unload
        # Oldest first. The engine counts loads: a name loaded again is another adapter to it than the one it forgot.
        self._cpu: dict[int, None] = {}
        self._gpu: dict[int, None] = {}
        self._known: dict[Name, int] = {}
        self._loads = 0

    def load(self, name: Name) -> None:
        """The engine was told to load it, and did; a name it knows is merely used."""
        if name not in self._known:
            self._loads += 1
            self._known[name] = self._loads
        self._use(self._known[name])

    def unload(self, name: Name) -> None:
        """The engine was told to forget the name; one it doesn't know is nothing."""
        adapter = self._known.pop(name, None)
        if adapter is not None and self._frees_on_unload:
            self._cpu.pop(adapter, None)
            self._gpu.pop(adapter, None)

    def request(self, name: Name) -> str | None:
        """A request was sent: the tier it found the adapter in, ``None`` for a name the engine doesn't know."""
        if name not in self._known:
            return None
        found = self._tier(self._known[name])
        self._use(self._known[name])
        return found

    def tiers(self) -> dict[Name, str]:
        """Every known name's tier: ``gpu``, ``cpu``, or ``disk`` where CPU memory has lost it silently."""
        return {name: self._tier(adapter) for name, adapter in self._known.items()}

    def _tier(self, adapter: int) -> str:
        if adapter in self._gpu:
            return GPU
        return CPU if adapter in self._cpu else DISK

    def _use(self, adapter: int) -> None:
        _touch(self._cpu, adapter)
        if len(self._cpu) > self._cpu_slots:
            oldest = next(iter(self._cpu))
            del self._cpu[oldest]
            self._gpu.pop(oldest, None)
        _touch(self._gpu, adapter)
        if len(self._gpu) > self._gpu_slots:
            del self._gpu[next(iter(self._gpu))]


def _touch(order: dict[int, None], adapter: int) -> None:
    order.pop(adapter, None)
    order[adapter] = None
