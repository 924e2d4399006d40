"""What is done to a running stack: files damaged, disks filled, processes stopped, engines poisoned."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
from safetensors.numpy import load, save

from bench.cache.adapters import Built
from deploy.embedded.postgres import SUPERUSER, PostgresServer
from deploy.embedded.stack import Stack
from tests.factories.base_folders import write_adapter


def damage(file: Path) -> None:
    """Change bytes in the middle, in place, as a disk does."""
    file.chmod(0o644)
    with file.open("r+b") as content:
        content.seek(file.stat().st_size // 2)
        content.write(b"\x55" * 4096)


def used(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


@contextmanager
def small_disk(folder: Path, *, mib: int) -> Iterator[bool]:
    """Put a disk of its own at the new folder, while in the block; whether this user may mount one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0755", "lorekeeper-chaos", str(folder)]
    is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Take every byte of the folder's disk while in the block, and each that somebody gives back."""
    if not folder.is_mount():
        pytest.skip("no disk of its own can be mounted here, and the machine's is not to be filled")
    filler, over, full = folder / "filler", threading.Event(), threading.Event()

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            while not over.wait(0.002):
                for piece in (2**20, 2**12):
                    write_until_full(file.fileno(), bytes(piece))
                full.set()

    writer = threading.Thread(target=fill, daemon=True)
    writer.start()
    try:
        assert full.wait(10)
        yield
    finally:
        over.set()
        writer.join()
        filler.unlink()


def write_until_full(descriptor: int, piece: bytes) -> None:
    with suppress(OSError):
        while os.write(descriptor, piece):
            pass


def core_of(stack: Stack) -> psutil.Process:
    """The process in which the engine computes; its API is another one, which goes on saying that all is well."""
    return next(
        child
        for child in psutil.Process(stack.pid_of("engine")).children(recursive=True)
        if "EngineCore" in " ".join(child.cmdline())
    )


def poisonous(folder: Path, version: Built) -> Path:
    """The version with a first layer that is no numbers, so that every layer's keys and values are none."""
    files = {path.name: path.read_bytes() for path in version.folder.iterdir()}
    tensors = load(files["adapter_model.safetensors"])
    next(array for name, array in tensors.items() if "layers.0.self_attn.v_proj.lora_A" in name)[:] = float("nan")
    return write_adapter(folder / "bad", {**files, "adapter_model.safetensors": save(tensors)})


def poison(engine: str, folder: str) -> None:
    """Load it past the agent, and have one long request of it leave NaNs in the whole KV cache."""
    body = {"lora_name": "by-hand", "lora_path": folder}
    # Its last block is half full: those who get the block next, with shorter texts, leave NaNs behind their own.
    long = {"model": "by-hand", "prompt": "Hi there " * 480, "max_tokens": 1}
    status = httpx.codes.NOT_FOUND
    while status == httpx.codes.NOT_FOUND:
        # The agent takes out what has no business there, maybe before the request comes.
        httpx.post(f"{engine}/v1/load_lora_adapter", json=body, timeout=30)
        status = httpx.codes(httpx.post(f"{engine}/v1/completions", json=long, timeout=30).status_code)
    assert status == httpx.codes.OK


def exchange_reference(stack: Stack, name: str, reading: tuple[float, ...]) -> None:
    """Have the version compared with another reading than that of its validation."""
    changed = write_to_database(
        stack,
        "UPDATE registry_validationreport SET reference = jsonb_set(reference, '{adapter}', %s::jsonb)"
        " WHERE reference IS NOT NULL AND version_id = (SELECT id FROM registry_version WHERE name = %s)",
        str(list(reading)),
        name,
    )
    assert changed == 1


def forget_restarts(stack: Stack) -> None:
    """As if the engine's last restart were long ago: otherwise the next one waits for minutes, as it should."""
    write_to_database(stack, "UPDATE cachecontrol_node SET recycles = 0, recycle_after = NULL")


def write_to_database(stack: Stack, statement: str, *values: str) -> int:
    """Past everything that guards it; how many rows were changed."""
    postgres = stack.server("postgres")
    assert isinstance(postgres, PostgresServer)
    with psycopg.connect(postgres.url(SUPERUSER)) as connection:
        connection.execute("SET session_replication_role = replica")
        return connection.execute(statement, values).rowcount
