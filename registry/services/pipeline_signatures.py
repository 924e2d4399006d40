"""What pipelines sign themselves: keys that a tenant registers, and bundles over a version's files made with them."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from registry import events
from registry.actors import Actor
from registry.errors import InvalidInput, NotFound, PipelineSignatureMissing, PreconditionFailed, WrongState
from registry.models import PipelineKey, PipelineSignature, Tenant, Version
from registry.permissions import Action, require_in_tenant
from registry.reviews import lock_policy
from registry.selectors import versions_with_relations
from registry.signing.errors import KeyFileError, SigningError
from registry.signing.keys import TrustedKey, key_id_of, pem_of, read_public_key
from registry.signing.manifest import SignedFile
from registry.signing.pipeline_bundle import key_id_in, verify_pipeline_bundle
from registry.states import VersionState

_UNDECIDED = (VersionState.UPLOADING, VersionState.VALIDATING, VersionState.CANDIDATE)


def require_pipeline_signature(version: Version) -> None:
    """Raise ``PipelineSignatureMissing`` if the tenant asks for a pipeline's signature and ``version`` has none.

    A bundle whose key has been revoked since does not count. Call it in the transaction that decides on the version.
    """
    if not version.adapter.tenant.require_pipeline_signature:
        return
    if not PipelineSignature.objects.filter(version=version, key__revoked_at__isnull=True).exists():
        raise PipelineSignatureMissing(
            _("This tenant takes only versions that their pipeline signed with a registered key. Attach its bundle.")
        )


@transaction.atomic
def register_pipeline_key(*, actor: Actor, tenant: Tenant, name: str, public_key: str) -> PipelineKey:
    """Trust a pipeline's public key (PEM, ECDSA P-256) in this tenant. Quiet if it is registered and not revoked.

    Raises:
        InvalidInput: not such a key, or one that was revoked here: that never comes back.

    """
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    try:
        key = read_public_key(public_key)
    except KeyFileError as error:
        raise InvalidInput(
            _("This is not a public key that can be registered: a PEM block “PUBLIC KEY” on the curve P-256."),
            field="public_key",
        ) from error
    registered, created = PipelineKey.objects.get_or_create(
        tenant=tenant, key_id=key_id_of(key), defaults={"name": name, "public_pem": pem_of(key)}
    )
    if registered.revoked_at is not None:
        raise InvalidInput(_("This key was revoked here; make a new one."), field="public_key")
    if created:
        events.pipeline_key_registered(actor=actor, key=registered)
    return registered


@transaction.atomic
def revoke_pipeline_key(*, actor: Actor, tenant: Tenant, key_id: str, reason: str) -> PipelineKey:
    """Trust nothing any more that the pipeline signed with this key. Quiet if it is revoked already.

    Versions that were approved stay so; whoever doubts them revokes them.
    """
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    lock_policy(tenant)
    key = (
        PipelineKey.objects.select_related("tenant")
        .select_for_update(of=("self",), no_key=True)
        .filter(tenant=tenant, key_id=key_id)
        .first()
    )
    if key is None:
        raise NotFound(_("This tenant has no pipeline key with this id."), field="key_id")
    if key.revoked_at is None:
        key.revoked_at, key.revoked_reason = timezone.now(), reason
        key.save(update_fields=["revoked_at", "revoked_reason"])
        events.pipeline_key_revoked(actor=actor, key=key)
    return key


@transaction.atomic
def attach_pipeline_signature(*, actor: Actor, version: Version, bundle: str) -> PipelineSignature:
    """Keep the bundle that a pipeline made over the version's files. Quiet if one by the same key is there.

    Raises:
        InvalidInput: not a bundle over exactly these files by a key that is registered here and trusted.
        WrongState: the version is decided on already.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, version.adapter.tenant_id)
    locked = versions_with_relations().select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    key = _key_of(locked, bundle)
    _verify(locked, key, bundle)
    known = PipelineSignature.objects.filter(version=locked, key=key).first()
    if known is not None:
        return known
    if locked.state not in _UNDECIDED:
        raise WrongState(
            _("%(version)s is %(state)s; a pipeline's signature comes before the decision.")
            % {"version": locked, "state": locked.state}
        )
    made = PipelineSignature.objects.create(version=locked, key=key, bundle=bundle, attached_by_id=actor.person_id)
    events.pipeline_signature_attached(actor=actor, signature=made)
    return made


@transaction.atomic
def change_signing_policy(
    *, actor: Actor, tenant: Tenant, require_pipeline_signature: bool, expected: bool | None = None
) -> Tenant:
    """Say whether versions need a pipeline's own signature to be approved. Quiet if nothing changes.

    Raises:
        PreconditionFailed: it is not what ``expected`` says any more.

    """
    require_in_tenant(actor, Action.MANAGE_TENANT, tenant.pk)
    lock_policy(tenant)
    locked = Tenant.objects.select_for_update(of=("self",), no_key=True).get(pk=tenant.pk)
    if locked.require_pipeline_signature == require_pipeline_signature:
        return locked
    if expected is not None and locked.require_pipeline_signature != expected:
        raise PreconditionFailed(_("The policy was changed meanwhile. Read it again and repeat your change."))
    locked.require_pipeline_signature = require_pipeline_signature
    locked.save(update_fields=["require_pipeline_signature"])
    events.signing_policy_changed(actor=actor, tenant=locked)
    return locked


def _key_of(version: Version, bundle: str) -> PipelineKey:
    """The tenant's trusted key that the bundle names; a share lock keeps it from being revoked meanwhile."""
    try:
        key_id = key_id_in(bundle)
    except SigningError as error:
        raise InvalidInput(_("The bundle can't be read: %(reason)s.") % {"reason": error}, field="bundle") from error
    keys = PipelineKey.objects.select_for_update(of=("self",), no_key=True)
    key = keys.filter(tenant_id=version.adapter.tenant_id, key_id=key_id).first()
    if key is None or key.revoked_at is not None:
        raise InvalidInput(
            _("The bundle is signed by the key %(key)s, which is not registered here or was revoked.")
            % {"key": key_id[:64]},
            field="bundle",
        )
    return key


def _verify(version: Version, key: PipelineKey, bundle: str) -> None:
    files = [
        SignedFile(path=file.path, size=file.artifact.size, sha256=file.artifact.sha256)
        for file in version.files.select_related("artifact")
    ]
    try:
        verify_pipeline_bundle(bundle, TrustedKey(read_public_key(key.public_pem)), files)
    except SigningError as error:
        raise InvalidInput(
            _("The bundle does not sign this version's files: %(reason)s.") % {"reason": error}, field="bundle"
        ) from error
