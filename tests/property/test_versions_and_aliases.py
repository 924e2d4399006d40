"""Versions and aliases against a plain model of what DESIGN promises of them, on the real Postgres and a real store.

Each example is one transaction that is rolled back; deferred constraints are looked at after each step all the same.
"""

import io
import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from client.audit import verify_export
from registry.audit import PLATFORM_CHAIN
from registry.errors import (
    DigestChanged,
    LorekeeperError,
    NotFound,
    SelfApproval,
    UploadIncomplete,
    VersionExists,
    WrongState,
)
from registry.models import Adapter, Approval, Artifact, AuditRecord, Signature, Tenant, Version
from registry.naming import default_alias_name, object_key
from registry.reports import StoredReport
from registry.services.approvals import approve_version, decline_version
from registry.services.audit.exports import audit_document
from registry.services.stores import artifact_store
from registry.services.uploads import finalize_upload, start_upload
from registry.services.validation import (
    abandoned_uploads,
    expire_upload,
    purge_version,
    record_validation,
    unpurged_rejections,
)
from registry.services.withdrawals import revoke_version, yank_version
from registry.states import Role, VersionState
from registry.stores.errors import StoreDigestMismatch
from releases.errors import NothingToRollBackTo, RevisionChanged, TargetNotServable
from releases.models import Alias, AliasRevision
from releases.services.aliases import roll_back_alias, set_alias
from releases.states import MoveKind
from tests.factories.registry import digest_for, make_actor, make_adapter, make_base_revision, make_member, make_tenant
from tests.property.known import CONTENTS, Known, KnownAlias, Stand, files_of, identity_of, manifest, sha256

if TYPE_CHECKING:
    from registry.actors import Actor

LONG_AGO = timedelta(days=3)
RESUMABLE = {VersionState.UPLOADING, VersionState.VALIDATING, VersionState.CANDIDATE, VersionState.APPROVED}
ON_FILE = set(VersionState) - {VersionState.UPLOADING, VersionState.REJECTED}

contents = st.sampled_from(CONTENTS)
refused_contents = st.sampled_from([{**CONTENTS[0], "adapter_model.safetensors": b"refused %d" % n} for n in range(2)])
people = st.integers(0, 2)
names = st.sampled_from(["v1", "v2", "v3", "V1", "2026.7", None])
alias_names = st.sampled_from(["support", "sales"])


class Killed(Exception):  # stands for a process that ends
    """The process ends before it commits."""


class VersionsAndAliases(RuleBasedStateMachine):
    versions = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        self.tenants: list[Tenant] = [make_tenant(), make_tenant()]
        revision = make_base_revision()
        self.base = revision.base_model
        self.adapters: list[Adapter] = [
            make_adapter(tenant=tenant, base_model=self.base) for tenant in (*self.tenants[:1] * 2, self.tenants[1])
        ]
        # Everybody may do everything in the first tenant, so that only the four eyes tell them apart.
        self.people: list[Actor] = [make_member(self.tenants[0], *Role) for _ in range(3)]
        self.outsider = make_member(self.tenants[1], *Role)
        self.known: list[Known] = []
        self.aliases: dict[str, KnownAlias] = {}
        self.stored: set[str] = set()
        self.changes: Counter[str] = Counter()
        self.verified: Counter[str] = Counter()
        self.key_published = False

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    @initialize(target=versions)
    def an_alias_has_been_moved_twice(self) -> Any:
        approved = [self.bring_one_to_approval(0, CONTENTS[number], 0, 0) for number in range(3)]
        for known in approved:
            self.point_an_alias("support", 1, known, "own", None)
        return multiple(*approved)

    # --- uploads

    @rule(target=versions, by=people, adapter=st.integers(0, 1), files=contents, name=names)
    def start_an_upload(self, by: int, adapter: int, files: dict[str, bytes], name: str | None) -> Known:
        known = self.start(by, adapter, files, name)
        if not known.digests() <= self.stored:
            self.finalize(known, by)
        return known

    @rule(target=versions, by=people, files=contents, reviewer=people, adapter=st.integers(0, 1))
    def bring_one_to_approval(self, by: int, files: dict[str, bytes], reviewer: int, adapter: int) -> Known:
        known = self.start(by, adapter, files, None)
        self.put_the_bytes(known, [True] * len(files))
        self.finalize(known, by)
        self.validate(known, "accept")
        self.approve(known, by, right_digest=True)
        self.approve(known, (by + 1) % 3, right_digest=False)
        self.approve(known, (by + 1 + reviewer % 2) % 3, right_digest=True)
        return known

    @rule(target=versions, by=people, files=refused_contents, adapter=st.integers(0, 1), killed=st.booleans())
    def bring_one_to_rejection(self, by: int, files: dict[str, bytes], adapter: int, *, killed: bool) -> Known:
        known = self.start(by, adapter, files, None)
        self.put_the_bytes(known, [True] * len(files))
        self.finalize(known, by)
        self.validate(known, "reject")
        if killed:
            self.a_purge_is_killed_before_its_commit(known)
        return known

    def start(self, by: int, adapter: int, files: dict[str, bytes], name: str | None) -> Known:
        known = [each for each in self.known if each.adapter == adapter]
        expected = self._resumed(known, by, files, name)
        if expected is None and name is not None and any(each.name == name for each in known):
            with pytest.raises(VersionExists):
                self._start(by, adapter, files, name)
            return next(each for each in known if each.name == name)
        started = self._start(by, adapter, files, name)
        assert started.resumed == (expected is not None)
        assert {target.path for target in started.targets} == set(files)
        if expected is not None:
            return next(each for each in expected if each.pk == started.version.pk)
        version = Version.objects.get(pk=started.version.pk)
        fresh = Known(version.pk, adapter, version.name, by, files, identity_of(version, files_of(version)[version.pk]))
        assert all(fresh.name != each.name for each in known), "a version number was used again"
        self.known.append(fresh)
        self.changed()
        return fresh

    @staticmethod
    def _resumed(known: list[Known], by: int, files: dict[str, bytes], name: str | None) -> list[Known] | None:
        same = [each for each in known if (each.uploader, each.contents) == (by, files)]
        if name is None:
            return [each for each in same if each.state is VersionState.UPLOADING] or None
        return [each for each in same if each.name == name and each.state in RESUMABLE] or None

    def _start(self, by: int, adapter: int, files: dict[str, bytes], name: str | None) -> Any:
        return start_upload(
            actor=self.people[by],
            adapter=self.adapters[adapter],
            base_revision="main",
            files=manifest(files),
            name=name,
        )

    @rule(known=versions, which=st.lists(st.booleans(), min_size=2, max_size=2))
    def put_the_bytes(self, known: Known, which: list[bool]) -> None:
        """Late too: an address outlives an upload that was refused, for a time."""
        if known.state is VersionState.REJECTED and known.aged:
            return
        for data, wanted in zip(known.contents.values(), which, strict=True):
            if wanted:
                artifact_store().put_stream(self.key(data), io.BytesIO(data), size=len(data), sha256=sha256(data))
                self.stored.add(sha256(data))

    @rule(known=versions)
    def put_other_bytes(self, known: Known) -> None:
        data = known.contents["adapter_model.safetensors"]
        if sha256(data) not in self.stored:
            with pytest.raises(StoreDigestMismatch):
                artifact_store().put_stream(
                    self.key(data), io.BytesIO(b"x" * len(data)), size=len(data), sha256=sha256(data)
                )

    @rule(known=versions, by=people)
    def finalize(self, known: Known, by: int) -> None:
        version = self.version(known)
        if known.state is VersionState.UPLOADING and not known.digests() <= self.stored:
            with pytest.raises(UploadIncomplete) as refused:
                finalize_upload(actor=self.people[by], version=version)
            again = self._start(known.uploader, known.adapter, known.contents, known.name)
            assert [target.stored for target in again.targets if target.path == refused.value.field] == [False]
            return
        finalize_upload(actor=self.people[by], version=version)
        if known.state is VersionState.UPLOADING:
            self.move(known, VersionState.VALIDATING)

    @rule(known=versions, verdict=st.sampled_from(["accept", "accept", "warn", "reject"]))
    def validate(self, known: Known, verdict: Any) -> None:
        report = StoredReport(
            verdict=verdict,
            policy_version="1",
            summary="" if verdict == "accept" else "a reason",
            document={"verdict": verdict},
            digest=digest_for(f"{known.name} {verdict}"),
            rank=4 + len(verdict),
            target_modules=("q_proj",),
        )
        record_validation(actor=make_actor(), version_id=known.pk, report=report)
        if known.state is VersionState.VALIDATING:
            known.validated_as = (report.rank, list(report.target_modules), report.digest)
            self.move(known, VersionState.REJECTED if verdict == "reject" else VersionState.CANDIDATE)

    # --- decisions

    @rule(known=versions, by=people, right_digest=st.sampled_from([True, True, True, False]))
    def approve(self, known: Known, by: int, *, right_digest: bool) -> None:
        version = self.version(known)
        digest = version.root_digest if right_digest else digest_for("something else")
        again = known.state is VersionState.APPROVED and known.approver == by
        error: type[LorekeeperError] | None = None
        if by == known.uploader:
            error = SelfApproval
        elif not right_digest:
            error = DigestChanged
        elif known.state is not VersionState.CANDIDATE and not again:
            error = WrongState
        self.attempt(error, lambda: approve_version(actor=self.people[by], version=version, digest=digest))
        if error is None and not again:
            known.approver = by
            self.move(known, VersionState.APPROVED)
            default = default_alias_name(self.adapters[known.adapter].name)
            if default not in self.aliases:
                self._moved(default, known, MoveKind.SET, None)
            if not self.key_published:
                self.key_published = True
                self.changes[PLATFORM_CHAIN] += 1

    @rule(known=versions, by=people)
    def decline(self, known: Known, by: int) -> None:
        error: type[LorekeeperError] | None = None
        if by == known.uploader:
            error = SelfApproval
        elif known.state is not VersionState.CANDIDATE:
            error = WrongState
        version = self.version(known)
        self.attempt(error, lambda: decline_version(actor=self.people[by], version=version, reason="no"))
        if error is None:
            self.move(known, VersionState.REJECTED)

    @rule(known=versions, by=people)
    def yank(self, known: Known, by: int) -> None:
        fine = known.state in {VersionState.APPROVED, VersionState.YANKED}
        version = self.version(known)
        self.attempt(
            None if fine else WrongState, lambda: yank_version(actor=self.people[by], version=version, reason="old")
        )
        if known.state is VersionState.APPROVED:
            self.move(known, VersionState.YANKED)
            assert self.start(known.uploader, known.adapter, known.contents, known.name) is known

    @rule(known=versions, by=people)
    def revoke(self, known: Known, by: int) -> None:
        movable = {VersionState.CANDIDATE, VersionState.APPROVED, VersionState.YANKED}
        fine = known.state in movable | {VersionState.REVOKED}
        version = self.version(known)
        self.attempt(
            None if fine else WrongState, lambda: revoke_version(actor=self.people[by], version=version, reason="bad")
        )
        if known.state in movable:
            self.move(known, VersionState.REVOKED)

    @rule(known=versions)
    def an_outsider_may_do_nothing(self, known: Known) -> None:
        actor, version = self.outsider, self.version(known)
        adapter = self.adapters[known.adapter]
        acts = [
            lambda: start_upload(
                actor=actor, adapter=adapter, base_revision="main", files=manifest(known.contents), name="mine"
            ),
            lambda: approve_version(actor=actor, version=version, digest=version.root_digest),
            lambda: decline_version(actor=actor, version=version, reason=""),
            lambda: revoke_version(actor=actor, version=version, reason=""),
            lambda: set_alias(actor=actor, tenant=self.tenants[0], name="support", adapter=adapter, version=version),
            lambda: finalize_upload(actor=actor, version=version),
        ]
        for act in acts:
            self.attempt(NotFound, act)

    # --- time and sweeps

    @rule(known=versions)
    def time_passes_over(self, known: Known) -> None:
        known.aged = True
        Version.objects.filter(pk=known.pk).update(state_changed_at=timezone.now() - LONG_AGO)

    @rule()
    def sweep_abandoned_uploads(self) -> None:
        due = {each.pk for each in self.known if each.state is VersionState.UPLOADING and each.aged}
        assert set(abandoned_uploads()) == due
        for known in [each for each in self.known if each.pk in due]:
            self.expire(known)

    @rule(known=versions)
    def expire(self, known: Known) -> None:
        expire_upload(actor=make_actor(), version_id=known.pk)
        if known.state is VersionState.UPLOADING:
            self.move(known, VersionState.REJECTED)

    @rule(known=versions)
    def purge(self, known: Known) -> None:
        purge_version(version_id=known.pk)
        self._forget_bytes(known)
        known.purged = known.purged or (known.state is VersionState.REJECTED and known.aged)

    @rule(known=versions)
    def a_purge_is_killed_before_its_commit(self, known: Known) -> None:
        with pytest.raises(Killed), transaction.atomic():
            purge_version(version_id=known.pk)
            raise Killed
        self._forget_bytes(known)
        if known.state is VersionState.REJECTED:
            self.finalize(self.start(known.uploader, known.adapter, known.contents, None), known.uploader)

    @rule()
    def sweep_rejected_versions(self) -> None:
        rejected = [each for each in self.known if each.state is VersionState.REJECTED]
        due = {each.pk for each in rejected if each.aged and not each.purged}
        assert set(unpurged_rejections()) == due
        for known in [each for each in rejected if each.pk in due]:
            self.purge(known)
            assert known.purged

    def _forget_bytes(self, known: Known) -> None:
        if known.state is VersionState.REJECTED and not known.purged:
            self.stored -= known.digests() - self._needed()

    # --- aliases

    @rule(
        name=alias_names,
        by=people,
        known=versions,
        adapter=st.sampled_from(["own", "own", "own", "other", "foreign"]),
        expected=st.sampled_from([None, None, "right", "wrong"]),
    )
    def point_an_alias(self, name: str, by: int, known: Known, adapter: str, expected: str | None) -> None:
        alias = self.aliases.get(name)
        revision = len(alias.rows) if alias else 0
        error: type[LorekeeperError] | None = None
        if expected == "wrong":
            error = RevisionChanged
        elif alias is not None and alias.now.version is known:
            error = None
        elif adapter != "own" or known.state is not VersionState.APPROVED:
            error = TargetNotServable
        index = {"own": known.adapter, "other": 1 - known.adapter, "foreign": 2}[adapter]
        self.attempt(
            error,
            lambda: set_alias(
                actor=self.people[by],
                tenant=self.tenants[0],
                name=name,
                adapter=self.adapters[index],
                version=self.version(known),
                expected_revision={None: None, "right": revision, "wrong": revision + 1}[expected],
            ),
        )
        if error is None and (alias is None or alias.now.version is not known):
            self._moved(name, known, MoveKind.MOVE if alias else MoveKind.SET, alias.now if alias else None)

    @rule(known=versions, by=people, name=alias_names)
    def point_a_foreign_alias_at_it(self, known: Known, by: int, name: str) -> None:
        self.attempt(
            TargetNotServable,
            lambda: set_alias(
                actor=self.outsider,
                tenant=self.tenants[1],
                name=name,
                adapter=self.adapters[known.adapter],
                version=self.version(known),
            ),
        )

    @rule(name=alias_names, by=people, away_from=st.sampled_from([None, "now", "before", "never"]))
    def roll_an_alias_back(self, name: str, by: int, away_from: str | None) -> None:
        alias = self.aliases.get(name)
        if alias is None:
            return
        revision = len(alias.rows)
        given = {None: None, "now": revision, "before": revision - 1, "never": revision + 1}[away_from]
        target = alias.target()
        error: type[LorekeeperError] | None = None
        if away_from == "never":
            error = RevisionChanged
        elif away_from != "before" and target is None:
            error = NothingToRollBackTo
        row = Alias.objects.get(pk=alias.pk)
        self.attempt(error, lambda: roll_back_alias(actor=self.people[by], alias=row, from_revision=given))
        if error is None and away_from != "before" and target is not None:
            self._moved(name, target.version, MoveKind.ROLLBACK, target.before)

    @rule(known=versions, name=alias_names, how=st.sampled_from(["revoke", "yank", "nothing"]))
    def withdraw_one_and_roll_back(self, known: Known, name: str, how: str) -> None:
        if how == "revoke":
            self.revoke(known, 0)
        elif how == "yank" and known.state is VersionState.APPROVED:
            self.yank(known, 0)
        self.roll_an_alias_back(name, 1, None)

    def _moved(self, name: str, version: Known, kind: MoveKind, before: Stand | None) -> None:
        servable = {VersionState.APPROVED} | ({VersionState.YANKED} if kind is MoveKind.ROLLBACK else set())
        assert version.state in servable
        stand = Stand(version, kind, before)
        if name not in self.aliases:
            self.aliases[name] = KnownAlias(Alias.objects.get(tenant=self.tenants[0], name=name).pk, stand)
        self.aliases[name].now = stand
        self.aliases[name].rows.append(stand)
        self.changed()

    # --- what always holds

    @invariant()
    def deferred_constraints_hold(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")

    @invariant()
    def versions_are_what_they_were_and_stand_where_the_model_says(self) -> None:
        found = {version.pk: version for version in Version.objects.filter(adapter__in=self.adapters)}
        assert found.keys() == {known.pk for known in self.known}
        files = files_of(*found.values())
        signed = set(Signature.objects.filter(version__in=found).values_list("version_id", flat=True))
        for known in self.known:
            version = found[known.pk]
            assert identity_of(version, files[known.pk]) == known.identity
            assert (version.state, version.purged_at is not None) == (known.state, known.purged)
            if known.validated_as:
                assert (version.rank, version.target_modules, version.validation_digest) == known.validated_as
            approved = {VersionState.APPROVED, VersionState.YANKED}
            assert known.state not in approved or known.pk in signed

    @invariant()
    def nobody_has_decided_on_an_own_upload(self) -> None:
        approvals = Approval.objects.filter(version__adapter__in=self.adapters).select_related("version")
        for approval in approvals:
            assert approval.reviewer_id != approval.version.uploader_id
            assert approval.root_digest == approval.version.root_digest

    @invariant()
    def aliases_and_their_history_are_what_happened(self) -> None:
        rows = AliasRevision.objects.filter(alias__tenant__in=self.tenants).order_by("alias_id", "number")
        by_alias: dict[Any, list[tuple[Any, ...]]] = {}
        for row in rows:
            by_alias.setdefault(row.alias_id, []).append(
                (row.number, row.kind, row.version_id, row.previous_version_id)
            )
        for alias in Alias.objects.filter(tenant__in=self.tenants):
            model = self.aliases[alias.name]
            versions = [stand.version.pk for stand in model.rows]
            kinds = [stand.kind.value for stand in model.rows]
            numbers = range(1, len(versions) + 1)
            assert by_alias.pop(alias.pk) == list(zip(numbers, kinds, versions, [None, *versions[:-1]], strict=True))
            assert (alias.revision, alias.version_id, alias.moved_by) == (len(versions), versions[-1], kinds[-1])
        assert by_alias == {}

    @invariant()
    def each_change_has_one_record_in_an_unbroken_chain(self) -> None:
        for chain in (*(tenant.name for tenant in self.tenants), PLATFORM_CHAIN):
            records = list(AuditRecord.objects.filter(chain=chain).order_by("seq"))
            assert len(records) == self.changes[chain]
            if self.verified[chain] == len(records):
                continue
            verdict = verify_export([json.dumps(audit_document(record)) for record in records], chain=chain)
            assert verdict.intact, verdict.first_bad
            self.verified[chain] = verdict.records

    @invariant()
    def the_store_holds_what_is_needed_and_nothing_for_ever(self) -> None:
        folder = Path(django_settings.STORE["folder"]) / "artifacts" / self.tenants[0].name
        found = {path.name for path in folder.rglob("*") if path.is_file()}
        assert found == self.stored
        on_file = [known.digests() for known in self.known if known.state in ON_FILE]
        assert set().union(*on_file) <= found
        open_ends = [known.digests() for known in self.known if not known.purged]
        assert found <= set().union(*open_ends)

    # --- the model's own steps

    def attempt(self, error: type[LorekeeperError] | None, act: Any) -> None:
        if error is None:
            act()
        else:
            with pytest.raises(error):
                act()

    def move(self, known: Known, to: VersionState) -> None:
        known.state, known.aged = to, False
        self.changed()

    def changed(self) -> None:
        self.changes[self.tenants[0].name] += 1

    def version(self, known: Known) -> Version:
        return Version.objects.select_related("adapter__tenant", "base_revision__base_model").get(pk=known.pk)

    def key(self, data: bytes) -> str:
        return object_key(tenant=self.tenants[0].name, sha256=sha256(data))

    def _needed(self) -> set[str]:
        return set().union(*(known.digests() for known in self.known if known.state is not VersionState.REJECTED))


@pytest.mark.usefixtures("db", "store", "signer", "sent")
@pytest.mark.parametrize("examples", [3, pytest.param(30, marks=pytest.mark.e2e)])
def test_versions_and_aliases_keep_their_promises(examples: int) -> None:
    assert not Artifact.objects.exists()
    run_state_machine_as_test(VersionsAndAliases, settings=settings(max_examples=examples, stateful_step_count=30))
