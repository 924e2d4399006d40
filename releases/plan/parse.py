import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

from registry.documents.read import read_document
from releases.plan.document import PlanDocument


def parse_plan(text: str) -> PlanDocument:
    """Read a plan as people write it. Raises ``DocumentError``: says what is wrong and where."""
    return read_document(text, PlanDocument, noun="release plan")


def plan_of(document: Mapping[str, Any]) -> PlanDocument:
    """The plan from the JSON that it was kept as; it was checked when it was written."""
    return PlanDocument.model_validate(document, strict=False)


def digest_of(plan: PlanDocument) -> str:
    """SHA-256 of what the plan means, every default written out, in canonical JSON: the same for texts that agree."""
    return hashlib.sha256(rfc8785.dumps(plan.model_dump(mode="json"))).hexdigest()
