import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from registry.signing.checkpoints import CHECKPOINT_PREDICATE, AuditCheckpoint, open_checkpoint, sign_checkpoint
from registry.signing.dsse import seal_statement
from registry.signing.errors import BadSignature, UnknownKey
from registry.signing.keys import TrustedKey, TrustedKeys
from registry.signing.local_key import LocalKeySigner

KEY = ec.generate_private_key(ec.SECP256R1())
SIGNER = LocalKeySigner(KEY)
TRUSTED = TrustedKeys([TrustedKey(KEY.public_key())])
SAID = AuditCheckpoint(chain="acme", seq=7, head="a" * 64, first="b" * 64, previous="c" * 64)


def test_what_was_signed_is_read_back_with_its_time_and_key() -> None:
    found = open_checkpoint(sign_checkpoint(SIGNER, SAID), TRUSTED)
    assert (found.chain, found.seq, found.head, found.first, found.previous) == (
        SAID.chain,
        SAID.seq,
        SAID.head,
        SAID.first,
        SAID.previous,
    )
    assert found.key_id == SIGNER.key_id
    assert found.signed_at


def test_a_key_that_is_not_trusted_and_a_changed_text_are_refused() -> None:
    text = sign_checkpoint(SIGNER, SAID)
    with pytest.raises(UnknownKey):
        open_checkpoint(text, TrustedKeys([]))
    with pytest.raises(BadSignature):
        open_checkpoint(text.replace("sigstore", "sigstorf"), TRUSTED)


@pytest.mark.parametrize(
    ("purpose", "predicate"),
    [
        ("https://lorekeeper.dev/attestations/release/v1", {"chain": "acme", "seq": 7, "first": "", "previous": ""}),
        (CHECKPOINT_PREDICATE, {"chain": "acme", "seq": 0, "first": "", "previous": ""}),
        (CHECKPOINT_PREDICATE, {"chain": "acme", "seq": True, "first": "", "previous": ""}),
        (CHECKPOINT_PREDICATE, {"chain": 1, "seq": 7, "first": "", "previous": ""}),
    ],
)
def test_what_is_signed_but_no_checkpoint_is_refused(purpose: str, predicate: dict[str, object]) -> None:
    text = seal_statement(SIGNER, predicate_type=purpose, subject="x", digest="a" * 64, predicate=predicate)
    with pytest.raises(BadSignature):
        open_checkpoint(text, TRUSTED)
