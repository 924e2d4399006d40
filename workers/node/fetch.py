"""Downloads: streamed to disk, digested on the way, resumed after a break, never longer than announced."""

import hashlib
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import IO, Protocol

import httpx

from workers.node.commands import WantedFile
from workers.node.errors import FetchError, WrongBytesError

ATTEMPTS = 5
FIRST_PAUSE_S = 0.2
# A store that gives a byte now and then would keep the node from every other command.
PATIENCE_S = 120.0
SLOWEST_BYTES_PER_S = 128 * 1024

_WORTH_RETRYING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class _BrokenOffError(FetchError):
    """An attempt failed in a way that another one may not."""


@dataclass(slots=True)
class _Progress:
    """What has been written so far, and its running digest."""

    out: IO[bytes]
    until: float
    done: int = 0
    digest: _Hash = field(default_factory=hashlib.sha256)

    def restart(self) -> None:
        self.out.seek(0)
        self.out.truncate()
        self.done, self.digest = 0, hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        self.out.write(chunk)
        self.digest.update(chunk)
        self.done += len(chunk)


class Fetcher:
    """Downloads by the URL in a command; call it only for a command whose grant was verified."""

    def __init__(
        self,
        http: httpx.Client | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http or _plain_client()
        self._sleep = sleep
        self._clock = clock

    def fetch(self, file: WantedFile, partial: Path) -> None:
        """Write the file to `partial`, synced by nobody yet; what is left there after an error is worthless.

        Raises:
            FetchError: the store can't be reached or refuses (the URL may be too old).
            WrongBytesError: it gives other bytes than the command says.

        """
        with partial.open("wb") as out:
            progress = _Progress(out, until=self._clock() + PATIENCE_S + file.size / SLOWEST_BYTES_PER_S)
            for pause in _pauses():
                try:
                    return self._attempt(file, progress)
                except _BrokenOffError as error:
                    if pause is None:
                        raise FetchError(f"{file.path}: {error}, after {ATTEMPTS} attempts") from error
                    self._sleep(pause)
        return None

    def close(self) -> None:
        self._http.close()

    def _attempt(self, file: WantedFile, progress: _Progress) -> None:
        headers = {"Accept-Encoding": "identity"}
        if progress.done:
            headers["Range"] = f"bytes={progress.done}-"
        try:
            with self._http.stream("GET", file.url, headers=headers) as response:
                self._check_status(file, response, progress)
                self._copy(file, response, progress)
        except httpx.HTTPError as error:
            raise _BrokenOffError(f"the store does not answer: {type(error).__name__}") from error
        except httpx.InvalidURL as error:
            raise FetchError(f"{file.path}: its URL can't be used: {error}") from error
        if progress.done < file.size:
            raise _BrokenOffError(f"the download ended after {progress.done} of {file.size} bytes")
        if progress.digest.hexdigest() != file.sha256:
            raise WrongBytesError(f"{file.path}: the store's bytes have another digest than the signed file")

    @staticmethod
    def _check_status(file: WantedFile, response: httpx.Response, progress: _Progress) -> None:
        status = response.status_code
        if status == HTTPStatus.PARTIAL_CONTENT and _starts_at(response, progress.done):
            return
        if status == HTTPStatus.OK:
            progress.restart()
            return
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _WORTH_RETRYING:
            raise _BrokenOffError(f"the store answers HTTP {status}")
        if status in {HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
            progress.restart()
            raise _BrokenOffError("the store does not resume where the download broke off")
        raise FetchError(f"{file.path}: the store answers HTTP {status}")

    def _copy(self, file: WantedFile, response: httpx.Response, progress: _Progress) -> None:
        for chunk in response.iter_raw():
            if self._clock() > progress.until:
                raise FetchError(f"{file.path}: the store is too slow, {progress.done} of {file.size} bytes came")
            if progress.done + len(chunk) > file.size:
                raise WrongBytesError(
                    f"{file.path}: the store gives more than the {file.size} bytes of the signed file"
                )
            progress.write(chunk)


def _plain_client() -> httpx.Client:
    """A client for the store's network: no redirects, no proxy of the environment, but its certificates."""
    return httpx.Client(
        timeout=httpx.Timeout(30.0, connect=5.0),
        follow_redirects=False,
        trust_env=False,
        verify=ssl.create_default_context(),
    )


def _pauses() -> Iterator[float | None]:
    """The pause after each attempt; None after the last."""
    yield from (FIRST_PAUSE_S * 2**attempt for attempt in range(ATTEMPTS - 1))
    yield None


def _starts_at(response: httpx.Response, offset: int) -> bool:
    return offset > 0 and response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")
