"""An engine driven by hand, as a careful person would write it in an afternoon: load on a miss, plain LRU.

A table of the names that are loaded, the least recently used one is unloaded through the API; a folder of downloaded
versions within the same disk budget, the least recently used one goes; one download and load per name however many
wait. Files of a loaded name are never deleted, or the engine might exit. No checks, no probe, no quotas.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import OrderedDict
from typing import TYPE_CHECKING

import httpx

from bench.cache.asking import Answer, completion, stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

    from bench.cache.adapters import Built
    from bench.cache.plan import Plan

_TRIES = 5


class NaiveDriver:
    """Stands between the application and the engine."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        url: str,
        *,
        store: S3Client,
        bucket: str,
        folder: Path,
        versions: Mapping[int, Built],
        plan: Plan,
    ) -> None:
        """Begin with nothing loaded and nothing on the disk in `folder`."""
        self._http, self._url = http, url
        self._store, self._bucket = store, bucket
        self._folder = folder
        self._versions = versions
        self._plan = plan
        self._disk_bytes = int(sum(version.size for version in versions.values()) * plan.disk_share)
        self._loaded: OrderedDict[int, None] = OrderedDict()
        self._on_disk: OrderedDict[int, int] = OrderedDict()
        self._flights: dict[int, asyncio.Task[None]] = {}

    async def send(self, answer: Answer, due: float) -> None:
        """Answer one request: have its version loaded, then ask the engine; a name that has gone is loaded again."""
        answer.found = answer.version in self._loaded
        for _attempt in range(_TRIES):
            await self._ensure_loaded(answer.version)
            body = completion(_name(answer.version), self._plan.tokens)
            await stream(self._http, self._url, body, answer, began=due)
            if answer.status != httpx.codes.NOT_FOUND:
                break
        answer.said = self._versions[answer.version].label

    async def _ensure_loaded(self, number: int) -> None:
        if number in self._loaded:
            self._loaded.move_to_end(number)
            return
        if number not in self._flights:
            self._flights[number] = asyncio.create_task(self._load(number))
        await asyncio.shield(self._flights[number])

    async def _load(self, number: int) -> None:
        try:
            await self._bring_to_disk(number)
            while len(self._loaded) >= self._plan.places:
                oldest, _ = self._loaded.popitem(last=False)
                await self._post("unload_lora_adapter", {"lora_name": _name(oldest)})
            path = str(self._folder / _name(number))
            await self._post("load_lora_adapter", {"lora_name": _name(number), "lora_path": path})
            self._loaded[number] = None
        finally:
            del self._flights[number]

    async def _bring_to_disk(self, number: int) -> None:
        if number in self._on_disk:
            self._on_disk.move_to_end(number)
            return
        version = self._versions[number]
        self._make_room(version.size)
        self._on_disk[number] = version.size
        folder = self._folder / _name(number)
        folder.mkdir(parents=True, exist_ok=True)
        names = [file.name for file in version.folder.iterdir()]
        await asyncio.gather(*(asyncio.to_thread(self._download, number, name) for name in names))

    def _download(self, number: int, name: str) -> None:
        body = self._store.get_object(Bucket=self._bucket, Key=object_name(number, name))["Body"]
        with (self._folder / _name(number) / name).open("wb") as file:
            shutil.copyfileobj(body, file, 2**20)

    def _make_room(self, size: int) -> None:
        kept = self._loaded.keys() | self._flights.keys()
        for number in [number for number in self._on_disk if number not in kept]:
            if sum(self._on_disk.values()) + size <= self._disk_bytes:
                return
            del self._on_disk[number]
            shutil.rmtree(self._folder / _name(number))

    async def _post(self, what: str, body: dict[str, str]) -> None:
        (await self._http.post(f"{self._url}/v1/{what}", json=body)).raise_for_status()


def object_name(number: int, name: str) -> str:
    """Where a file of a version lies in the store."""
    return f"{_name(number)}/{name}"


def _name(number: int) -> str:
    return f"version-{number}"
