from uuid import uuid4

from django.db import models
from django.db.models import Q

from registry.models import Person, Version
from releases.models.aliases import Alias
from releases.models.templates import ReleaseTemplate
from releases.states import ACTIVE_STATES, PauseKind, ReleaseState, StepKind, StepState

_ACTIVE = [state.value for state in sorted(ACTIVE_STATES)]


class Release(models.Model):
    """One attempt to move an alias from ``stable`` to ``candidate``. Rules: ``releases/sql/releases.sql``.

    ``plan`` (a ``PlanDocument`` with every default) and ``digest`` (SHA-256 of its canonical JSON together with alias,
    stable and candidate) never change: approvals name the digest. ``step`` is the index of the step that runs or is
    next. ``revision`` counts changes: who changes a release has seen which. ``paused_state`` is the state to go back
    to, ``sentence`` what the release waits for, for people.
    """

    id = models.UUIDField(primary_key=True, default=uuid4)
    alias = models.ForeignKey(Alias, on_delete=models.PROTECT, related_name="releases")
    number = models.PositiveIntegerField()
    stable = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="+")
    stable_revision = models.PositiveIntegerField()
    candidate = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="releases")
    template = models.ForeignKey(ReleaseTemplate, on_delete=models.PROTECT, null=True, related_name="+")
    plan = models.JSONField()
    digest = models.CharField(max_length=64)
    reason = models.TextField(blank=True, default="")
    state = models.CharField(max_length=12, default=ReleaseState.PENDING.value)
    step = models.PositiveIntegerField(default=0)
    revision = models.PositiveIntegerField(default=1)
    paused_state = models.CharField(max_length=12, blank=True, default="")
    pause_kind = models.CharField(max_length=8, blank=True, default="")
    sentence = models.TextField(blank=True, default="")
    made_by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="releases_made")
    made_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)

    class Meta:
        # Lists show the newest first, of a whole tenant, too.
        indexes = [models.Index(fields=["-made_at", "-id"], name="release_newest_first")]
        constraints = [
            models.UniqueConstraint(fields=["alias", "number"], name="release_number_once"),
            models.UniqueConstraint(fields=["alias"], condition=Q(state__in=_ACTIVE), name="release_one_active"),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in ReleaseState]), name="release_state_known"
            ),
            models.CheckConstraint(
                condition=Q(pause_kind__in=["", *(kind.value for kind in PauseKind)]), name="release_pause_known"
            ),
            models.CheckConstraint(condition=~Q(stable=models.F("candidate")), name="release_goes_somewhere"),
        ]

    def __str__(self) -> str:
        return f"release {self.number} of {self.alias}"


class ReleaseStep(models.Model):
    """One step of a release, made with it; ``spec`` is its section of the plan. ``attempt`` counts its beginnings.

    What is compared begins at ``started_at`` of the attempt; the longest wait begins at ``resumed_at``, when a person
    last let the step go on, or else with the attempt.

    ``verdict`` is the last one of the judge (``releases.judge.verdict``) as JSON, ``sentence`` what came of the step or
    what it waits for. ``course`` is what was judged as points over time (``releases.steering.course``).
    """

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="steps")
    index = models.PositiveIntegerField()
    kind = models.CharField(max_length=8)
    spec = models.JSONField()
    state = models.CharField(max_length=8, default=StepState.WAITING.value)
    attempt = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    resumed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    sentence = models.TextField(blank=True, default="")
    verdict = models.JSONField(null=True)
    judged_at = models.DateTimeField(null=True)
    course = models.JSONField(null=True)

    class Meta:
        ordering = ["index"]
        constraints = [
            models.UniqueConstraint(fields=["release", "index"], name="release_step_once"),
            models.UniqueConstraint(fields=["release"], condition=Q(state="running"), name="release_step_one_runs"),
            models.CheckConstraint(
                condition=Q(kind__in=[kind.value for kind in StepKind]), name="release_step_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in StepState]), name="release_step_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.index} ({self.kind}) of {self.release}"


class ReleaseApproval(models.Model):
    """One person's consent to start a release with exactly that plan; never changed."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="approvals")
    reviewer = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    comment = models.TextField(blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["release", "reviewer"], name="release_approval_once")]

    def __str__(self) -> str:
        return f"{self.reviewer} approves {self.release}"
