"""``python -m bench.upload``: MB/s of a push and of a bare S3 upload of the same bytes, and the memory of web.

Everything is on this machine: S3 (SeaweedFS), web, and whoever pushes share its cores and its disk. The bare upload is
boto3's own, with the same parts and as many at a time; it is measured before and after. The last line says ok or short,
and so does the exit status: short if web takes 100 MiB more than it had, by either way in.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from boto3.s3.transfer import TransferConfig

from bench.upload.stage import LINE, REVISION, PeakMemory, Stage, start, write_adapter
from client.manifest import read_manifest
from client.sdk import LorekeeperClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from client.models import VersionFile

BOUND_MIB = 100.0
WORKERS = 4
PART_BYTES = 16 * 1024**2
_MIB = 1024.0**2
_CHUNK = 1 << 20
_BOUNDARY = "lorekeeper-bench"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.upload", description=__doc__)
    parser.add_argument("--mib", type=int, default=2048, help="size of the adapter's weights (default: %(default)s)")
    size = parser.parse_args(arguments).mib << 20
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="lorekeeper-bench-", ignore_cleanup_errors=True) as folder:
        # Postgres runs as another account and has to pass through.
        Path(folder).chmod(0o711)
        stage = start(Path(folder))
        try:
            worst = _measure(stage, Path(folder), size)
        finally:
            stage.stack.stop()
    verdict = "ok" if worst < BOUND_MIB else "short"
    _print(f"bench-upload: {verdict} web takes at most {worst:.0f} MiB more, bound {BOUND_MIB:.0f} MiB")
    return 0 if verdict == "ok" else 1


def _measure(stage: Stage, folder: Path, size: int) -> float:
    """Print every figure; return how many MiB more web took at its worst."""
    first = write_adapter(folder / "first", size, seed=1)
    _print(f"{size / _MIB:.0f} MiB of weights, parts of {PART_BYTES / _MIB:.0f} MiB, {WORKERS} at a time")
    before = _timed(lambda: _bare_upload(stage, first))
    hashing = _timed(lambda: read_manifest(first))
    with PeakMemory(stage) as pushed:
        push = _timed(lambda: _push(stage, first))
    after = _timed(lambda: _bare_upload(stage, first))
    bare = (before + after) / 2
    _print(f"bare S3 upload               {_rate(size, bare)}   (first {before:.1f} s, again {after:.1f} s)")
    _print(f"lorekeeper push, in parts    {_rate(size, push)}   {bare / push:.2f} of the bare upload")
    _print(f"  without hashing ({hashing:.1f} s)    {_rate(size, push - hashing)}   {bare / (push - hashing):.2f}")
    _print(f"  web took {pushed.extra_bytes / _MIB:.1f} MiB more")
    second = write_adapter(folder / "second", size, seed=2)
    with PeakMemory(stage) as streamed:
        took = _timed(lambda: _push_through_web(stage, second))
    _print(f"one request through web      {_rate(size, took)}   {bare / took:.2f} of the bare upload")
    _print(f"  web took {streamed.extra_bytes / _MIB:.1f} MiB more")
    return max(pushed.extra_bytes, streamed.extra_bytes) / _MIB


def _bare_upload(stage: Stage, folder: Path) -> None:
    """What boto3 does by itself, into the same bucket; the object is removed again."""
    server = stage.stack.server("s3")
    client = server.client()  # type: ignore[attr-defined]  # the stack's S3 is a SeaweedServer
    bucket, key = server.bucket, "bench/bare"  # type: ignore[attr-defined]
    config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=WORKERS)
    for path in sorted(folder.iterdir()):
        client.upload_file(str(path), bucket, key, Config=config)
    client.delete_object(Bucket=bucket, Key=key)
    client.close()


def _push(stage: Stage, folder: Path) -> None:
    with LorekeeperClient(stage.web_url, stage.token) as client:
        client.push(folder, LINE, base_revision=REVISION, name="in-parts", workers=WORKERS)


def _push_through_web(stage: Stage, folder: Path) -> None:
    """One multipart request, as any HTTP client can make it."""
    files = [source.declared for source in read_manifest(folder)]
    heads = [_head(file) for file in files]
    manifest = _field(files)
    end = f"--{_BOUNDARY}--\r\n".encode()
    length = len(manifest) + len(end) + sum(len(head) + file.size + 2 for head, file in zip(heads, files, strict=True))
    headers = {
        "Authorization": f"Bearer {stage.token}",
        "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
        "Content-Length": str(length),
    }

    def body() -> Iterator[bytes]:
        yield manifest
        for head, file in zip(heads, files, strict=True):
            yield head
            with (folder / file.path).open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    yield chunk
            yield b"\r\n"
        yield end

    url = f"{stage.web_url}/api/v1/tenants/{LINE.tenant}/adapters/{LINE.name}/push"
    httpx.post(url, content=body(), headers=headers, timeout=600).raise_for_status()


def _field(files: Sequence[VersionFile]) -> bytes:
    listed = [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in files]
    text = json.dumps({"base_revision": REVISION, "name": "one-request", "files": listed})
    return f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="manifest"\r\n\r\n{text}\r\n'.encode()


def _head(file: VersionFile) -> bytes:
    return f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{file.path}"; filename="file"\r\n\r\n'.encode()


def _timed(act: Callable[[], object]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began


def _rate(size: int, seconds: float) -> str:
    return f"{size / 1e6 / seconds:7.1f} MB/s in {seconds:6.1f} s"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
