from cachecontrol.policy.document import PolicyDocument
from registry.documents.read import read_document


def parse_policy(text: str) -> PolicyDocument:
    """Read a policy. Raises ``DocumentError``: says what is wrong and where."""
    return read_document(text, PolicyDocument, noun="policy")
