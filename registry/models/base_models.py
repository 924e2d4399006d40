from django.db import models


class BaseModel(models.Model):
    name = models.CharField(max_length=63, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class BaseModelRevision(models.Model):
    """One pinned revision, described by digests and tensor shapes; the weights themselves stay where they are."""

    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="revisions")
    label = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    description = models.JSONField()
    max_rank = models.PositiveIntegerField(default=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["base_model", "label"], name="base_revision_label_once"),
        ]

    def __str__(self) -> str:
        return f"{self.base_model}@{self.label}"
