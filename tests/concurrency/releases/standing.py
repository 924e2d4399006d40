"""What always holds of an alias, its split, its history and its releases, whoever did what at the same moment."""

from itertools import pairwise

from registry.models import AuditRecord, Version
from registry.states import VersionState
from releases.models import Alias, AliasInterval, AliasRevision, AliasSplit, Release
from releases.states import ACTIVE_STATES, ENDED_STATES

OVER = ("passed", "skipped")


def assert_all_stands(alias_id: int) -> None:
    """Look at everything of one alias."""
    alias = Alias.objects.select_related("version", "tenant").get(pk=alias_id)
    assert_history_is_whole(alias)
    assert_intervals_are_whole(alias)
    assert_targets_may_answer(alias)
    for release in Release.objects.filter(alias=alias):
        assert_release_stands(release, alias)
    active = Release.objects.filter(alias=alias, state__in=[state.value for state in ACTIVE_STATES])
    assert active.count() <= 1


def assert_history_is_whole(alias: Alias) -> None:
    rows = list(AliasRevision.objects.filter(alias=alias).order_by("number"))
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.previous_version_id for row in rows] == [None, *(row.version_id for row in rows[:-1])]
    assert (alias.revision, alias.version_id, alias.moved_by) == (
        rows[-1].number, rows[-1].version_id, rows[-1].kind,
    )  # fmt: skip


def assert_intervals_are_whole(alias: Alias) -> None:
    """Each begins where the one before it ended, and the last says what is so now."""
    rows = list(AliasInterval.objects.filter(alias=alias).order_by("valid_from"))
    for before, after in pairwise(rows):
        assert before.valid_to == after.valid_from
        assert before.valid_from < after.valid_from
    split = AliasSplit.objects.filter(alias=alias).first()
    now = rows[-1]
    assert (now.valid_to, now.version_id) == (None, alias.version_id)
    assert (now.candidate_id, now.basis_points) == ((split.candidate_id, split.basis_points) if split else (None, 0))


def assert_targets_may_answer(alias: Alias) -> None:
    """What the alias points at was not withdrawn when it was pointed there; what its split names isn't at all."""
    version = alias.version
    moved_before = alias.updated_at < version.state_changed_at
    went_back = alias.moved_by == "rollback" and version.state == VersionState.YANKED
    assert version.state == VersionState.APPROVED or moved_before or went_back
    split = AliasSplit.objects.filter(alias=alias).first()
    named = [] if split is None else [split.candidate_id, split.shadow_id]
    for state in Version.objects.filter(pk__in=named).values_list("state", flat=True):
        assert state == VersionState.APPROVED


def assert_release_stands(release: Release, alias: Alias) -> None:
    states = [step.state for step in release.steps.order_by("index")]
    assert states.count("running") <= 1
    # Those that are over come first, then the one that runs, then those that wait; or what ended with the release.
    ranks = [0 if state in OVER else 1 if state == "running" else 2 for state in states]
    assert ranks == sorted(ranks)
    if release.state in ACTIVE_STATES:
        assert alias.version_id == release.stable_id
        assert Version.objects.get(pk=release.candidate_id).state == VersionState.APPROVED
        split = AliasSplit.objects.filter(alias=alias).first()
        assert split is None or split.candidate_id == release.candidate_id
    if release.state in ENDED_STATES:
        assert {"waiting", "running"}.isdisjoint(states)
    if release.state == "promoted":
        assert set(states) <= set(OVER)
        moved = AliasRevision.objects.get(alias=alias, number=release.stable_revision + 1)
        assert (moved.kind, moved.version_id) == ("move", release.candidate_id)
    assert_each_change_has_one_record(release)


def assert_each_change_has_one_record(release: Release) -> None:
    records = AuditRecord.objects.filter(object__kind="release", object__id=str(release.pk)).order_by("seq")
    told = [record.after["revision"] for record in records if record.after and "revision" in record.after]
    assert told == list(range(2, release.revision + 1))
