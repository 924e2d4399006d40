"""Downloads: large files in parallel ranges, resumed after a break, never longer than announced, digested."""

import hashlib
import os
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Condition, Event

import httpx

from workers.node.commands import WantedFile
from workers.node.errors import FetchError, SupersededError, WrongBytesError
from workers.node.limits import MAX_DOWNLOADS, Limits

ATTEMPTS = 5
FIRST_PAUSE_S = 0.2
CONNECT_TIMEOUT_S = 5.0
# A store that gives a byte now and then would keep a stream from every other command.
PATIENCE_S = 120.0
SLOWEST_BYTES_PER_S = 128 * 1024
PART_BYTES = 32 * 2**20
# How soon a download that waits for others notices that it is void.
GLANCE_S = 0.5

_CHUNK_BYTES = 2**20
_WORTH_RETRYING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class _BrokenOffError(FetchError):
    """An attempt failed in a way that another one may not."""


@dataclass(slots=True)
class _Job:
    """One file being written to an open descriptor; `is_whole` once the store turned out to know no ranges."""

    file: WantedFile
    descriptor: int
    is_whole: bool = False

    def is_right(self) -> bool:
        """Whether what was written has the signed file's digest."""
        digest, offset = hashlib.sha256(), 0
        while chunk := os.pread(self.descriptor, _CHUNK_BYTES, offset):
            digest.update(chunk)
            offset += len(chunk)
        return digest.hexdigest() == self.file.sha256

    def spans(self) -> list["_Span"]:
        """The parts to ask for; an empty file and one without ranges are one part."""
        step = max(self.file.size, 1) if self.is_whole else PART_BYTES
        starts = range(0, max(self.file.size, 1), step)
        return [_Span(self, start, min(start + step, self.file.size)) for start in starts]


@dataclass(slots=True)
class _Span:
    """Bytes `start` to before `stop` of a file; `done` of them are written."""

    job: _Job
    start: int
    stop: int
    done: int = 0

    @property
    def is_all(self) -> bool:
        return self.start == 0 and self.stop == self.job.file.size

    @property
    def size(self) -> int:
        return self.stop - self.start

    def write(self, chunk: bytes) -> None:
        if self.done + len(chunk) > self.size:
            path, size = self.job.file.path, self.job.file.size
            raise WrongBytesError(f"{path}: the store gives more than the {size} bytes of the signed file")
        view = memoryview(chunk)
        while view:
            written = os.pwrite(self.job.descriptor, view, self.start + self.done)
            self.done += written
            view = view[written:]


@dataclass(slots=True)
class _Streams:
    """So many streams at once as the limits say at the moment."""

    limits: Callable[[], Limits]
    _open: int = 0
    _changed: Condition = field(default_factory=Condition)

    @contextmanager
    def one(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a place and hold it; `check` is called now and then while waiting, and may raise."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._open < self.limits().concurrent_downloads, GLANCE_S):
                check()
            self._open += 1
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()


class Fetcher:
    """Downloads by the URLs in a command; call it only for a command whose grant was verified. Threads share it."""

    def __init__(
        self,
        http: httpx.Client | None = None,
        *,
        limits: Callable[[], Limits] = Limits,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        threads: int = MAX_DOWNLOADS,
    ) -> None:
        self._http = http or _plain_client()
        self._limits = limits
        self._streams = _Streams(limits)
        self._sleep = sleep
        self._clock = clock
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="download")

    def fetch(self, wanted: Iterable[tuple[WantedFile, Path]], *, is_void: Callable[[], bool] = lambda: False) -> None:
        """Write each file to its path, synced by nobody yet; what is left there after an error is worthless.

        Raises:
            FetchError: the store can't be reached or refuses (the URL may be too old).
            WrongBytesError: it gives other bytes than the command says.
            SupersededError: `is_void` became true meanwhile.
            OSError: the disk is full, or fails.

        """
        pairs = tuple(wanted)
        with ExitStack() as stack:
            jobs = [stack.enter_context(_opened(file, path)) for file, path in pairs]
            self._run(jobs, is_void)
            self._run([job for job in jobs if job.is_whole], is_void)
            # Parts, or an attempt and its continuation, may be of different objects: only one answer may be right.
            wrong = [job for job in jobs if not job.is_right()]
            for job in wrong:
                job.is_whole = True
            self._run(wrong, is_void)
            for job in wrong:
                if not job.is_right():
                    path = job.file.path
                    raise WrongBytesError(f"{path}: the store's bytes have another digest than the signed file")

    def close(self) -> None:
        self._pool.shutdown()
        self._http.close()

    def _run(self, jobs: Sequence[_Job], is_void: Callable[[], bool]) -> None:
        """Download these; the first failure ends the others, and is raised when they have ended.

        Only a few parts are handed to the threads at a time, so that another download needn't wait for all of them.
        """
        failed = Event()
        left = deque(span for job in jobs for span in job.spans())
        running: set[Future[None]] = set()
        ended: list[Future[None]] = []

        def check() -> None:
            if is_void():
                raise SupersededError("a newer command for the same name came")
            if failed.is_set():
                raise _BrokenOffError("another part of the download failed")

        while running or (left and not failed.is_set()):
            while left and not failed.is_set() and len(running) < self._limits().concurrent_downloads:
                running.add(self._pool.submit(self._download, left.popleft(), check))
            done, running = wait(running, GLANCE_S, FIRST_COMPLETED)
            ended += done
            if is_void() or any(future.exception() for future in done):
                failed.set()
                running = {future for future in running if not future.cancel()}
        _raise_first(ended)
        check()

    def _download(self, span: _Span, check: Callable[[], None]) -> None:
        with self._streams.one(check):
            until = self._clock() + PATIENCE_S + span.size / SLOWEST_BYTES_PER_S
            for pause in _pauses():
                check()
                try:
                    return self._attempt(span, until, check)
                except _BrokenOffError as error:
                    check()
                    if pause is None:
                        raise FetchError(f"{span.job.file.path}: {error}, after {ATTEMPTS} attempts") from error
                    self._sleep(pause)
        return None

    def _attempt(self, span: _Span, until: float, check: Callable[[], None]) -> None:
        file = span.job.file
        patience = self._limits().origin_timeout_s
        timeout = httpx.Timeout(patience, connect=min(CONNECT_TIMEOUT_S, patience))
        try:
            with self._http.stream("GET", file.url, headers=_headers(span), timeout=timeout) as response:
                if not _is_usable(response, span):
                    return
                for chunk in response.iter_raw():
                    check()
                    if self._clock() > until:
                        raise FetchError(f"{file.path}: the store is too slow, {span.done} of {span.size} bytes came")
                    span.write(chunk)
        except httpx.HTTPError as error:
            raise _BrokenOffError(f"the store does not answer: {type(error).__name__}") from error
        except httpx.InvalidURL as error:
            raise FetchError(f"{file.path}: its URL can't be used: {error}") from error
        if span.done < span.size:
            raise _BrokenOffError(f"the download ended after {span.done} of {span.size} bytes")


@contextmanager
def _opened(file: WantedFile, path: Path) -> Iterator[_Job]:
    """The file with its whole space taken, so that a disk without room for it says so before the download."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if file.size:
            os.posix_fallocate(descriptor, 0, file.size)
        yield _Job(file, descriptor)
    finally:
        os.close(descriptor)


def _headers(span: _Span) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity"}
    if span.done or not span.is_all:
        end = "" if span.is_all else str(span.stop - 1)
        headers["Range"] = f"bytes={span.start + span.done}-{end}"
    return headers


def _is_usable(response: httpx.Response, span: _Span) -> bool:
    """Whether the answer's body continues the span; False when the store knows no ranges. Anything else raises."""
    status, path = response.status_code, span.job.file.path
    if status == HTTPStatus.PARTIAL_CONTENT and _starts_at(response, span.start + span.done):
        return True
    if status == HTTPStatus.OK:
        span.done = 0
        span.job.is_whole = not span.is_all
        return span.is_all
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _WORTH_RETRYING:
        raise _BrokenOffError(f"the store answers HTTP {status}")
    if status in {HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
        span.done = 0
        raise _BrokenOffError("the store does not resume where the download broke off")
    raise FetchError(f"{path}: the store answers HTTP {status}")


def _starts_at(response: httpx.Response, offset: int) -> bool:
    return str(response.headers.get("Content-Range", "")).startswith(f"bytes {offset}-")


def _raise_first(futures: Iterable[Future[None]]) -> None:
    """The failure that says most: not the one of a part that only ended because another failed."""
    errors = [error for future in futures if (error := future.exception()) is not None]
    told = [error for error in errors if not isinstance(error, _BrokenOffError)] or errors
    if told:
        raise told[0]


def _plain_client() -> httpx.Client:
    """A client for the store's network: no redirects, no proxy of the environment, but its certificates."""
    return httpx.Client(
        limits=httpx.Limits(max_connections=MAX_DOWNLOADS, max_keepalive_connections=MAX_DOWNLOADS),
        follow_redirects=False,
        trust_env=False,
        verify=ssl.create_default_context(),
    )


def _pauses() -> Iterator[float | None]:
    """The pause after each attempt; None after the last."""
    yield from (FIRST_PAUSE_S * 2**attempt for attempt in range(ATTEMPTS - 1))
    yield None
