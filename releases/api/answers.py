"""Shapes of answers, for the OpenAPI document. What is really answered is made in ``documents``; a test compares."""

from typing import Any

from rest_framework import serializers

from releases.judge.verdict import Metric, Outcome
from releases.states import MoveKind, PauseKind, ReleaseState, StepKind, StepState


class SharesAnswer(serializers.Serializer[Any]):
    adapter = serializers.CharField()
    version = serializers.CharField()
    version_id = serializers.UUIDField()
    basis_points = serializers.IntegerField()
    salt = serializers.CharField()
    allow = serializers.ListField(child=serializers.CharField())
    deny = serializers.ListField(child=serializers.CharField())
    shadow_adapter = serializers.CharField(allow_null=True)
    shadow_version = serializers.CharField(allow_null=True)
    shadow_version_id = serializers.UUIDField(allow_null=True)
    shadow_basis_points = serializers.IntegerField()


class SplitAnswer(SharesAnswer):
    changed_at = serializers.DateTimeField()


class ProtectionAnswer(serializers.Serializer[Any]):
    movers = serializers.ListField(child=serializers.CharField(), help_text="Who alone may move it; empty: by role.")
    needs_release = serializers.BooleanField(help_text="Only a promoted release moves it, or a rollback.")
    changed_at = serializers.DateTimeField()


class AliasAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    name = serializers.CharField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    version_id = serializers.UUIDField()
    revision = serializers.IntegerField()
    updated_at = serializers.DateTimeField()
    split = SplitAnswer(allow_null=True)
    protection = ProtectionAnswer(allow_null=True)


class PastSplitAnswer(SharesAnswer):
    revoked_at = serializers.DateTimeField(
        allow_null=True, help_text="From then on its share went back to the alias's version."
    )


class AliasIntervalAnswer(serializers.Serializer[Any]):
    valid_from = serializers.DateTimeField()
    valid_to = serializers.DateTimeField(allow_null=True, help_text="Null: it goes on.")
    split = PastSplitAnswer(allow_null=True)
    release = serializers.IntegerField(allow_null=True, help_text="The release that split or moved the alias so.")


class AliasGrantAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField(help_text="Who may call the alias.")
    name = serializers.CharField(help_text="By which name.")
    granted_at = serializers.DateTimeField()


class SharedAliasAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    granted_at = serializers.DateTimeField()


class MoverAnswer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    id = serializers.CharField()
    name = serializers.CharField()


class AliasRevisionAnswer(serializers.Serializer[Any]):
    revision = serializers.IntegerField()
    adapter = serializers.CharField()
    version = serializers.CharField()
    previous_version = serializers.CharField(allow_null=True)
    kind = serializers.ChoiceField(choices=[kind.value for kind in MoveKind])
    actor = MoverAnswer()
    reason = serializers.CharField()
    at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True, help_text="From then on the version answered nothing.")
    intervals = AliasIntervalAnswer(many=True, help_text="How its requests were split meanwhile, the newest first.")


class NamedVersionAnswer(serializers.Serializer[Any]):
    adapter = serializers.CharField()
    version = serializers.CharField()
    version_id = serializers.UUIDField()


class NamedTemplateAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    number = serializers.IntegerField()


class ReleaseAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    tenant = serializers.CharField()
    alias = serializers.CharField()
    number = serializers.IntegerField(help_text="Counts the releases of the alias.")
    stable = NamedVersionAnswer(help_text="What the alias points at.")
    candidate = NamedVersionAnswer(help_text="What it is to point at.")
    state = serializers.ChoiceField(choices=[state.value for state in ReleaseState])
    pause_kind = serializers.ChoiceField(
        choices=[kind.value for kind in PauseKind], allow_null=True, help_text="Why it is paused."
    )
    sentence = serializers.CharField(help_text="What it waits for, or how it ended.")
    step = serializers.IntegerField(help_text="The index of the step that runs or is next.")
    step_kind = serializers.ChoiceField(choices=[kind.value for kind in StepKind])
    steps = serializers.IntegerField(help_text="How many there are.")
    revision = serializers.IntegerField(help_text="Counts changes; see `expected_revision` of what changes it.")
    digest = serializers.CharField(help_text="Of plan, alias and both versions: what an approval is given to.")
    template = NamedTemplateAnswer(allow_null=True, help_text="Null for the built-in one and for a plan of its own.")
    reason = serializers.CharField()
    approvals_needed = serializers.IntegerField()
    approvals_given = serializers.IntegerField()
    made_by = serializers.CharField()
    made_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    looked_at = serializers.DateTimeField(allow_null=True, help_text="When it was last looked at by the controller.")


class ReleaseApprovalAnswer(serializers.Serializer[Any]):
    reviewer = serializers.CharField()
    digest = serializers.CharField()
    comment = serializers.CharField()
    at = serializers.DateTimeField()


class RollbackAnswer(serializers.Serializer[Any]):
    """How long a rollback took, in ms from the request."""

    tenant = serializers.CharField()
    alias = serializers.CharField()
    release = serializers.IntegerField(allow_null=True, help_text="The number of the release that was rolled back.")
    revision = serializers.IntegerField(help_text="The alias's after it.")
    left = NamedVersionAnswer(help_text="What doesn't answer any more.")
    asked_at = serializers.DateTimeField()
    committed_at = serializers.DateTimeField()
    commit_ms = serializers.FloatField(help_text="Until the change stood.")
    last_answer_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the last answer by what was left ended; null: not known yet, or there was none.",
    )
    last_answer_ms = serializers.FloatField(allow_null=True, help_text="Until that.")
    strays = serializers.IntegerField(help_text="Requests that began after the change and were answered by it still.")
    settled_at = serializers.DateTimeField(allow_null=True, help_text="When all records of that time had arrived.")


class WholeReleaseAnswer(ReleaseAnswer):
    plan = serializers.DictField(help_text="With every default written out.")
    approvals = ReleaseApprovalAnswer(many=True)
    rollbacks = RollbackAnswer(many=True)


class IntervalAnswer(serializers.Serializer[Any]):
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class MetricAnswer(serializers.Serializer[Any]):
    metric = serializers.ChoiceField(choices=[metric.value for metric in Metric])
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    sentence = serializers.CharField()
    tested = serializers.CharField(help_text="What was asked, and how sure an answer has to be.")
    unit = serializers.CharField()
    holds = serializers.BooleanField(help_text="The step can't pass before this has changed.")
    canary = serializers.FloatField(allow_null=True)
    stable = serializers.FloatField(allow_null=True)
    difference = serializers.FloatField(allow_null=True, help_text="Canary less stable.")
    interval = IntervalAnswer(allow_null=True, help_text="What the data leave open of the difference.")


class JudgedRequestsAnswer(serializers.Serializer[Any]):
    canary = serializers.IntegerField()
    stable = serializers.IntegerField()


class VerdictAnswer(serializers.Serializer[Any]):
    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    sentence = serializers.CharField()
    metrics = MetricAnswer(many=True)
    slices = serializers.IntegerField(help_text="Of the step's window.")
    requests = JudgedRequestsAnswer(help_text="How many of each side were judged by.")
    mirrored = serializers.IntegerField(help_text="How many mirrored answers were compared.")


class ReleaseStepAnswer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in StepKind])
    state = serializers.ChoiceField(choices=[state.value for state in StepState])
    spec = serializers.DictField(help_text="Its section of the plan.")
    attempt = serializers.IntegerField(help_text="How often it was begun.")
    started_at = serializers.DateTimeField(allow_null=True, help_text="When its last attempt was.")
    ended_at = serializers.DateTimeField(allow_null=True)
    sentence = serializers.CharField(help_text="What came of it, or what it waits for.")
    verdict = VerdictAnswer(allow_null=True, help_text="The judge's last one; docs/releases-judge.md.")
    judged_at = serializers.DateTimeField(allow_null=True)


class ReleaseTemplateAnswer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    name = serializers.CharField()
    number = serializers.IntegerField(help_text="Counts the editions; 0: built in.")
    digest = serializers.CharField()
    written_by = serializers.CharField(allow_null=True)
    written_at = serializers.DateTimeField(allow_null=True)


class WholeReleaseTemplateAnswer(ReleaseTemplateAnswer):
    text = serializers.CharField(help_text="The YAML as it was written; empty for the built-in one.")
    document = serializers.DictField(help_text="What it means, with every default written out.")
