"""What the hub-compatible API answers."""

from collections.abc import Iterable
from typing import Any

from registry.actors import Actor
from registry.hub.names import lfs_pointer
from registry.models import Tenant
from registry.services.hub.repos import Repo
from registry.services.hub.revisions import Ref, Refs
from registry.services.hub.trees import Tree, tree_digest
from registry.signing.manifest import SignedFile
from registry.states import Scope

Document = dict[str, Any]


def whoami_document(actor: Actor, tenants: Iterable[Tenant]) -> Document:
    """``name`` is the namespace that clients put before a repository's name when they are given none."""
    names = [tenant.name for tenant in tenants]
    return {
        "type": "user",
        "id": actor.id,
        "name": names[0] if len(names) == 1 else actor.id,
        "fullname": actor.name,
        "email": actor.id if actor.kind == "person" else None,
        "emailVerified": True,
        "isPro": False,
        "canPay": False,
        "orgs": [{"type": "org", "id": name, "name": name, "fullname": name, "isEnterprise": False} for name in names],
        "auth": {
            "type": "access_token",
            "accessToken": {
                "displayName": actor.token_prefix,
                "role": "write" if Scope.UPLOAD in actor.scopes else "read",
            },
        },
    }


def info_document(repo: Repo, tree: Tree) -> Document:
    base = repo.adapter.base_model.name if repo.adapter else None
    return {
        "_id": str(repo),
        "id": str(repo),
        "modelId": str(repo),
        "author": repo.tenant.name,
        "sha": tree.commit,
        "createdAt": _date(tree),
        "lastModified": _date(tree),
        "private": True,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "library_name": "peft",
        "tags": ["peft", "lora", *([f"base_model:adapter:{base}"] if base else [])],
        "siblings": [
            {"rfilename": file.path, "size": file.size, "blobId": _pointer(file)["oid"], "lfs": _lfs_of_sibling(file)}
            for file in tree.files
        ],
    }


def refs_document(refs: Refs) -> Document:
    return {
        "branches": [_ref(ref, "heads") for ref in refs.branches],
        "tags": [_ref(ref, "tags") for ref in refs.tags],
        "converts": [],
        "pullRequests": [],
    }


def commit_document(tree: Tree) -> Document:
    title, _newline, message = tree.title.partition("\n")
    return {
        "id": tree.commit,
        "title": title,
        "message": message,
        "date": _date(tree),
        "authors": [{"user": tree.author}],
    }


def entry_documents(tree: Tree, folder: str, *, recursive: bool, expand: bool) -> list[Document]:
    """What lies in ``folder`` (empty: at the top), and below it if ``recursive``; folders first, as by path."""
    prefix = f"{folder}/" if folder else ""
    inside = [file for file in tree.files if file.path.startswith(prefix)]
    folders = {parent for file in inside for parent in _parents(file.path) if parent.startswith(prefix)}
    entries = [_folder_document(tree, path, expand=expand) for path in sorted(folders)]
    entries += [file_document(tree, file, expand=expand) for file in inside]
    return [entry for entry in entries if recursive or "/" not in entry["path"].removeprefix(prefix)]


def path_documents(tree: Tree, paths: Iterable[str], *, expand: bool) -> list[Document]:
    """Those of the paths that are there."""
    folders = {parent for file in tree.files for parent in _parents(file.path)}
    found = []
    for path in paths:
        file = tree.file(path)
        if file is not None:
            found.append(file_document(tree, file, expand=expand))
        elif path.rstrip("/") in folders:
            found.append(_folder_document(tree, path.rstrip("/"), expand=expand))
    return found


def file_document(tree: Tree, file: SignedFile, *, expand: bool) -> Document:
    """Every file is told as one under git-lfs is: by its SHA-256."""
    shown = {"type": "file", "path": file.path, "size": file.size, **_pointer(file)}
    return {**shown, **(_last_commit(tree) if expand else {})}


def _folder_document(tree: Tree, path: str, *, expand: bool) -> Document:
    digests = {file.path: file.sha256 for file in tree.files if file.path.startswith(f"{path}/")}
    shown = {"type": "directory", "path": path, "size": 0, "oid": tree_digest(digests)[: len(tree.commit)]}
    return {**shown, **(_last_commit(tree) if expand else {})}


def _pointer(file: SignedFile) -> Document:
    pointer = lfs_pointer(sha256=file.sha256, size=file.size)
    return {"oid": pointer.oid, "lfs": {"oid": file.sha256, "size": file.size, "pointerSize": pointer.size}}


def _lfs_of_sibling(file: SignedFile) -> Document:
    lfs = _pointer(file)["lfs"]
    return {"sha256": lfs["oid"], "size": lfs["size"], "pointerSize": lfs["pointerSize"]}


def _last_commit(tree: Tree) -> Document:
    return {"lastCommit": {"id": tree.commit, "title": commit_document(tree)["title"], "date": _date(tree)}}


def _ref(ref: Ref, kind: str) -> Document:
    return {"name": ref.name, "ref": f"refs/{kind}/{ref.name}", "targetCommit": ref.commit}


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _date(tree: Tree) -> str | None:
    return f"{tree.at:%Y-%m-%dT%H:%M:%S.%fZ}" if tree.at else None
