import uuid

from django.db import models

from registry.models.artifacts import Artifact
from registry.models.people import Person
from registry.models.tenants import Tenant


class HubDraft(models.Model):
    """What one person pushed to a branch and has not cut a version of. Nobody else sees it.

    The adapter it is for may not exist yet: its base model is known only when a version is cut.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="hub_drafts")
    adapter_name = models.CharField(max_length=63)
    branch = models.CharField(max_length=64)
    owner = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="hub_drafts")
    head = models.ForeignKey("HubCommit", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "adapter_name", "branch", "owner"], name="hub_draft_once")
        ]
        indexes = [models.Index(fields=["changed_at"], name="hub_draft_since")]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.adapter_name} {self.branch} of {self.owner}"


class HubCommit(models.Model):
    """All files of a draft at one time. It fills while a push arrives; sealed, it never changes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    draft = models.ForeignKey(HubDraft, on_delete=models.CASCADE, related_name="commits")
    parent = models.CharField(max_length=40, blank=True, default="")
    title = models.TextField(blank=True, default="")
    description = models.TextField(blank=True, default="")
    tree_digest = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    sealed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(sealed_at__isnull=True) | ~models.Q(tree_digest=""), name="hub_commit_sealed_whole"
            )
        ]
        indexes = [models.Index(fields=["created_at"], name="hub_commit_since")]

    def __str__(self) -> str:
        return f"{self.draft}: {self.title}"


class HubFile(models.Model):
    commit = models.ForeignKey(HubCommit, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=255)
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="hub_files")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["commit", "path"], name="hub_path_once")]
        ordering = ["path"]

    def __str__(self) -> str:
        return self.path
