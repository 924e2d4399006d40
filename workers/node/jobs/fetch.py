"""Bringing a version's files to the disk, verified: what `node.fetch` does, and the first half of `node.warm`."""

import logging
from typing import Any

from registry.naming import ATTESTATION_FILE, BUNDLE_FILE
from workers.node.agent import Agent
from workers.node.commands import FetchCommand, WantedFile
from workers.node.disk.janitor import make_room
from workers.node.errors import EngineError
from workers.node.jobs.evict import unload
from workers.node.jobs.job import Job, carry_out
from workers.node.reports import Outcome
from workers.node.verify import DamagedError

_log = logging.getLogger(__name__)


def fetch(agent: Agent, command: FetchCommand) -> Outcome | None:
    """Carry the command out; it ends `on_disk`. See `carry_out`."""
    return carry_out(agent, command, "fetch", check=agent.verifier.grant, still_true=_is_on_disk, work=_fetch)


def _is_on_disk(agent: Agent, outcome: Outcome) -> bool:
    return agent.cache.has(outcome.engine_name)


def _fetch(job: Job[FetchCommand]) -> Outcome:
    job.agent.tombstones.spare(job.name)
    _take_out(job)
    bring_to_disk(job)
    return job.outcome("on_disk")


def _take_out(job: Job[FetchCommand]) -> None:
    """It is wanted on the disk alone: an unload that failed before is made up for, if the engine answers now."""
    agent = job.agent
    try:
        if any(each.name == job.name for each in agent.engine.list_loaded()):
            unload(agent, job.name, grace_s=agent.grace_s, delete=False)
    except EngineError as error:
        _log.info("%s: the engine can't be asked: %s", job.name, error)


def bring_to_disk(job: Job[Any]) -> None:
    """Download what is missing and check every byte of the version's folder against both signatures.

    Raises:
        FetchError, DiskFullError, SupersededError: it could not be downloaded.
        NotTrustedError: it is not what was signed; nothing of it is loaded. Where the disk is at fault, it may pass.

    """
    command: FetchCommand = job.command
    with job.agent.cache.pinned(command.files):
        _download(job, command)
        try:
            _place_and_verify(job, command)
        except DamagedError as error:
            dropped = job.agent.cache.drop_corrupted(command.files)
            _log.warning("%s: %s; %d of its files are fetched again", job.name, error, dropped)
            _download(job, command)
            _place_and_verify(job, command)
    job.agent.cache.touch(job.name)


def _download(job: Job[Any], command: FetchCommand) -> None:
    cache = job.agent.cache
    if cache.missing(command.files):
        job.tell("fetching")
    # Once more for what was found corrupted meanwhile: only what was claimed may be downloaded.
    while claimed := cache.missing(command.files):
        _download_claimed(job, claimed)


def _download_claimed(job: Job[Any], claimed: tuple[WantedFile, ...]) -> None:
    cache = job.agent.cache
    with job.timed("fetch"), cache.downloading(claimed, check=job.right.check):
        missing = cache.missing(claimed)
        make_room(job.agent, sum(file.size for file in missing))
        with cache.room_for(missing, budget_bytes=job.agent.limits.now.disk_bytes):
            paths = [(file, cache.partial_path(file.sha256)) for file in missing]
            try:
                job.agent.fetcher.fetch(paths, is_void=job.right.is_void)
                for file, path in paths:
                    cache.adopt(path, file.sha256)
            finally:
                for _, path in paths:
                    path.unlink(missing_ok=True)
        job.fetched_bytes += sum(file.size for file in missing)


def _place_and_verify(job: Job[Any], command: FetchCommand) -> None:
    texts = {BUNDLE_FILE: command.bundle, ATTESTATION_FILE: command.attestation}
    with job.timed("verify"):
        folder = job.agent.cache.place(job.name, command.files, texts)
        job.agent.verifier.folder(folder, command, job.grant)
