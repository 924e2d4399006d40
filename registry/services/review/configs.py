"""What a version's ``adapter_config.json`` says, to be read beside another's."""

import json
from collections.abc import Sequence
from typing import Final

from registry.base_models.strict_json import StrictJsonError, parse
from registry.models import VersionFile
from registry.naming import object_key
from registry.services.stores import artifact_store

CONFIG: Final = "adapter_config.json"
# One that is longer is no config; its beginning is enough to see that.
MAX_BYTES: Final = 64 * 1024


def read_config(*, tenant: str, files: Sequence[VersionFile]) -> str | None:
    """The config among ``files``, with its keys in order; None if there is none, or if its bytes are gone.

    Raises ``StoreError`` while the store can't be read.
    """
    file = next((each for each in files if each.path == CONFIG), None)
    if file is None or file.artifact.stored_at is None:
        return None
    with artifact_store().open(object_key(tenant=tenant, sha256=file.artifact.sha256)) as stream:
        data = stream.read(MAX_BYTES)
    try:
        return json.dumps(parse(data), indent=2, sort_keys=True, ensure_ascii=False)
    except StrictJsonError:
        return data.decode("utf-8", errors="replace")
