from django.db import models

from registry.models import Version
from releases.models.aliases import Alias
from releases.models.releases import Release


class Rollback(models.Model):
    """How long one rollback took: from the click to the last answer by the version that was left.

    ``left`` is the version that had answered wrongly (a candidate, or what the alias pointed at). ``last_answer_at`` is
    when its last answer ended; None while that isn't known yet, or when there was none. ``strays`` counts requests that
    began after the commit and were answered by it all the same: a gateway hears of a change some milliseconds later.
    """

    alias = models.ForeignKey(Alias, on_delete=models.PROTECT, related_name="rollbacks")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, null=True, related_name="rollbacks")
    revision = models.PositiveIntegerField()
    left = models.ForeignKey(Version, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField()
    committed_at = models.DateTimeField()
    last_answer_at = models.DateTimeField(null=True)
    strays = models.PositiveIntegerField(default=0)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # An alias whose own version is withdrawn and that has no way back keeps its revision while releases end.
            models.UniqueConstraint(
                fields=["alias", "revision", "release"], nulls_distinct=False, name="rollback_once_per_revision"
            )
        ]

    def __str__(self) -> str:
        return f"rollback of {self.alias} to revision {self.revision}"
