from django.db import models

from registry.models import Person, Tenant


class ReleaseTemplate(models.Model):
    """One edition of a tenant's template; what it says never changes, the newest number of a name is the one in use.

    ``text`` is the YAML as it was written, ``document`` what it means with every default written out.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="release_templates")
    name = models.CharField(max_length=63)
    number = models.PositiveIntegerField()
    text = models.TextField()
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    written_by = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="+")
    written_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name", "number"], name="release_template_once")]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.name}#{self.number}"
