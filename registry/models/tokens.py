from django.contrib.postgres.fields import ArrayField
from django.db import models

from registry.models.people import Person
from registry.models.tenants import Tenant
from registry.states import TokenKind


class ApiToken(models.Model):
    """A bearer token. Only its SHA-256 is kept; the text is shown once, when it is made."""

    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=12)
    person = models.ForeignKey(Person, on_delete=models.CASCADE, null=True, related_name="tokens")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="tokens")
    scopes = ArrayField(models.CharField(max_length=20))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=[kind.value for kind in TokenKind]), name="token_kind_known"
            ),
            models.CheckConstraint(
                condition=models.Q(kind=TokenKind.PERSON.value, person__isnull=False)
                | (~models.Q(kind=TokenKind.PERSON.value) & models.Q(person__isnull=True)),
                name="token_person_iff_person",
            ),
            models.CheckConstraint(
                condition=~models.Q(kind=TokenKind.APPLICATION.value) | models.Q(tenant__isnull=False),
                name="application_token_has_tenant",
            ),
        ]

    def __str__(self) -> str:
        return f"lk_{self.prefix}_…"
