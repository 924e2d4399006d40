"""Cutting a version of a draft: a tag names it, the draft's config says the base model, and the upload is the usual."""

from typing import Any, Final

from django.utils.translation import gettext as _

from registry.actors import Actor
from registry.base_models import strict_json
from registry.errors import InvalidInput, NameTaken, UploadIncomplete, VersionExists, WrongState
from registry.hub.names import base_model_names, identity_in
from registry.models import Adapter, BaseModel, BaseModelRevision, Version
from registry.naming import check_version_name, object_key
from registry.permissions import Action, require_in_tenant
from registry.selectors import get_adapter
from registry.services.adapters import create_adapter
from registry.services.hub.drafts import pushed_tree
from registry.services.hub.repos import Repo
from registry.services.hub.revisions import readable_versions
from registry.services.hub.trees import Tree
from registry.services.stores import artifact_store
from registry.services.uploads import finalize_upload, start_upload
from registry.signing.manifest import SignedFile
from registry.states import VersionState
from registry.stores.errors import ObjectMissing

CONFIG: Final = "adapter_config.json"
_MAX_CONFIG_BYTES: Final = 1024 * 1024
_SHOWN: Final = 20


def cut_version(*, actor: Actor, repo: Repo, name: str, revision: str) -> Version:
    """Make version ``name`` of what the caller pushed to ``revision`` and hand it to validation.

    An adapter that doesn't exist yet is made with the base model that ``adapter_config.json`` names. Safe to repeat
    after it broke off anywhere.

    Raises:
        InvalidInput: there is no config, or it names no base model that is registered; says which are.
        VersionExists: there is a version of this name.
        WrongState: the revision is a version already.

    """
    require_in_tenant(actor, Action.UPLOAD_VERSION, repo.tenant.pk)
    check_version_name(name, field="tag")
    _refuse_existing(repo, name)
    tree = pushed_tree(actor=actor, repo=repo, revision=revision)
    _refuse_cut(actor, repo, tree)
    config = _read_config(repo, tree)
    adapter = repo.adapter or _make_adapter(actor, repo, config)
    started = start_upload(
        actor=actor,
        adapter=adapter,
        base_revision=_base_revision(adapter, config),
        files=tree.files,
        name=name,
    )
    return finalize_upload(actor=actor, version=started.version)


def _refuse_existing(repo: Repo, name: str) -> None:
    """A version that is still uploading may be this very tag, cut off: the upload decides whether it is."""
    version = Version.objects.filter(adapter=repo.adapter, name=name).first()
    if version is not None and version.state != VersionState.UPLOADING:
        raise VersionExists(
            _("Tag %(tag)s already exists. A version number is never used again: choose another name.") % {"tag": name},
            field="tag",
        )


def _refuse_cut(actor: Actor, repo: Repo, tree: Tree) -> None:
    if readable_versions(actor, repo).filter(pk=identity_in(tree.commit)).exists():
        raise WrongState(
            _("There is nothing to cut a version of: %(commit)s is %(title)s. Push something first.")
            % {"commit": tree.commit, "title": tree.title},
            field="revision",
        )


def _read_config(repo: Repo, tree: Tree) -> dict[str, Any]:
    """The draft's config. Raises ``InvalidInput`` when it is missing or can't be read."""
    file = tree.file(CONFIG)
    if file is None or file.size > _MAX_CONFIG_BYTES:
        raise InvalidInput(
            _("A version needs %(path)s of at most %(most)d bytes. Push it first.")
            % {"path": CONFIG, "most": _MAX_CONFIG_BYTES},
            field=CONFIG,
        )
    try:
        config = strict_json.parse(_read(repo, file))
    except strict_json.StrictJsonError as error:
        raise InvalidInput(_("%(path)s: %(reason)s.") % {"path": CONFIG, "reason": error}, field=CONFIG) from None
    if not isinstance(config, dict):
        raise InvalidInput(_("%(path)s is not a JSON object.") % {"path": CONFIG}, field=CONFIG)
    return config


def _read(repo: Repo, file: SignedFile) -> bytes:
    try:
        with artifact_store().open(object_key(tenant=repo.tenant.name, sha256=file.sha256)) as stream:
            return stream.read(file.size)
    except ObjectMissing as error:
        raise UploadIncomplete(
            _("%(path)s is not in the store any more. Push it again.") % {"path": file.path}, field=file.path
        ) from error


def _make_adapter(actor: Actor, repo: Repo, config: dict[str, Any]) -> Adapter:
    recorded = config.get("base_model_name_or_path")
    names = base_model_names(recorded) if isinstance(recorded, str) else ()
    found = min(BaseModel.objects.filter(name__in=names), key=lambda base: names.index(base.name), default=None)
    if found is None:
        known = BaseModel.objects.order_by("name").values_list("name", flat=True)[:_SHOWN]
        raise InvalidInput(
            _(
                "%(path)s: base_model_name_or_path is %(recorded)s, and no registered base model is called so "
                "(there are: %(known)s). Register it, or create the adapter with its base model first."
            )
            % {"path": CONFIG, "recorded": ascii(recorded)[:200], "known": ", ".join(known) or "-"},
            field=CONFIG,
        )
    try:
        return create_adapter(actor=actor, tenant=repo.tenant, name=repo.name, base_model=found.name)
    except NameTaken:
        # Somebody made it in this moment: what they said its base model is holds.
        return get_adapter(actor=actor, tenant=repo.tenant.name, name=repo.name, action=Action.UPLOAD_VERSION)


def _base_revision(adapter: Adapter, config: dict[str, Any]) -> str:
    """The revision that the config names, if it is registered, or else the newest."""
    revisions = BaseModelRevision.objects.filter(base_model=adapter.base_model).order_by("-created_at", "-pk")
    labels = list(revisions.values_list("label", flat=True))
    if not labels:
        raise InvalidInput(
            _("Base model %(base)s has no revision. Register one first: lorekeeper base register.")
            % {"base": adapter.base_model.name},
            field="base_revision",
        )
    named = config.get("revision")
    return named if isinstance(named, str) and named in labels else labels[0]
