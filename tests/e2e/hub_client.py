"""What a pipeline does with an unmodified ``huggingface_hub``; run by the interpreter of each version's environment.

    python hub_client.py push REPO FOLDER TAG
    python hub_client.py read REPO REVISION CACHE

prints one JSON object. HF_ENDPOINT and HF_TOKEN say where and as whom. Knows nothing of Lorekeeper.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

# The versions differ in their types.
api: Any = HfApi()


def push(repo: str, folder: str, tag: str) -> dict[str, Any]:
    """Everything that pushing needs: a repository, several commits, a branch, and a tag at the end."""
    url = api.create_repo(repo, exist_ok=True, private=True)
    again = api.create_repo(repo, exist_ok=True)
    api.upload_file(path_or_fileobj=b"# A README\n", path_in_repo="README.md", repo_id=repo)
    uploaded = api.upload_folder(folder_path=folder, repo_id=repo, commit_message="Upload weights")
    operations = [
        CommitOperationAdd(path_in_repo="notes/run.md", path_or_fileobj=b"a run"),
        CommitOperationAdd(path_in_repo="training_args.bin", path_or_fileobj=b"left out"),
        CommitOperationDelete(path_in_repo="README.md"),
    ]
    commit = api.create_commit(repo, operations, commit_message="Notes", parent_commit=uploaded.oid)
    api.create_branch(repo, branch="try", revision=commit.oid, exist_ok=True)
    api.upload_file(path_or_fileobj=b"{}", path_in_repo="extra.json", repo_id=repo, revision="try")
    api.create_tag(repo, tag=tag, tag_message="For serving", revision=commit.oid)
    api.create_tag(repo, tag=tag, exist_ok=True)
    return {
        "version": huggingface_hub.__version__,
        "whoami": api.whoami()["name"],
        "repo_id": url.repo_id,
        "again": again.repo_id,
        "oid": commit.oid,
        "commit_repo": commit.repo_url.repo_id,
        "tags": [ref.name for ref in api.list_repo_refs(repo).tags],
        "branches": [ref.name for ref in api.list_repo_refs(repo).branches],
        "files": sorted(api.list_repo_files(repo, revision=tag)),
        "on_try": sorted(api.list_repo_files(repo, revision="try")),
        "history": [item.title for item in api.list_repo_commits(repo, revision=commit.oid)],
        "duplicate": refused(lambda: api.create_tag(repo, tag=tag)),
        "unsafe": refused(lambda: api.upload_file(path_or_fileobj=b"x", path_in_repo="run.py", repo_id=repo)),
        "unmake": refused(lambda: api.delete_tag(repo, tag=tag)),
    }


def read(repo: str, revision: str, cache: str) -> dict[str, Any]:
    """Everything that loading needs, with a cache that may be warm."""
    options: Any = {"repo_id": repo, "revision": revision, "cache_dir": cache}
    try:
        folder = Path(snapshot_download(**options))
        one = hf_hub_download(filename="adapter_config.json", **options)
    except (RevisionNotFoundError, RepositoryNotFoundError) as error:
        return {"error": type(error).__name__, "message": str(error)}
    try:
        missing = hf_hub_download(filename="missing.json", **options)
    except EntryNotFoundError as error:
        missing = type(error).__name__
    info = api.model_info(repo, revision=revision, files_metadata=True)
    paths = api.get_paths_info(repo, ["adapter_config.json", "notes"], revision=revision)
    weights = "adapter_model.safetensors"
    return {
        "sha": info.sha,
        "commit_folder": folder.name,
        "digests": {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*")
            if path.is_file()
        },
        "sizes": {sibling.rfilename: sibling.size for sibling in info.siblings},
        "one": Path(one).name,
        "missing": missing,
        "paths": [path.path for path in paths],
        "exists": [
            api.file_exists(repo, weights, revision=revision),
            api.file_exists(repo, "no.bin", revision=revision),
        ],
        "tensors": len(api.parse_safetensors_file_metadata(repo, weights, revision=revision).tensors),
    }


def refused(act: Callable[[], object]) -> str:
    try:
        act()
    except Exception as error:  # noqa: BLE001  whatever the client makes of it is what is asked for
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    print(json.dumps({"push": push, "read": read}[command](*arguments)))
