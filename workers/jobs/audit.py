"""Looking after the audit log: what could not be told at once, and the signed checkpoints that are due."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from registry.actors import system_actor
from registry.audit import PLATFORM_CHAIN
from registry.errors import AuditBroken, SignerUnavailable
from registry.services.audit.checkpoints import chains_due, make_checkpoint
from registry.services.audit.checks import begin_check, carry_on, chain_state, stalled_checks
from registry.services.audit.denials import tell_notices
from registry.stores.errors import StoreError

logger = logging.getLogger(__name__)


def keep_audit() -> None:
    """One pass. What is wrong with one chain stops no other; a store or signer that is away is asked again later."""
    with _on_its_own("what could not be told at once"):
        tell_notices()
    for check_id in stalled_checks():
        with _on_its_own(f"check {check_id}"):
            check_audit(check_id)
    for chain in chains_due():
        try:
            with _on_its_own(f"the checkpoint of {chain}"):
                _seal(chain)
        except (StoreError, SignerUnavailable) as error:
            logger.warning("the audit log of %s and others get their checkpoint later: %s", chain, error)
            return


def _seal(chain: str) -> None:
    try:
        make_checkpoint(actor=system_actor("checkpoints"), chain=chain)
    except AuditBroken as error:
        # The loudest thing that this system can say, again at each run until somebody looks.
        logger.critical("THE AUDIT LOG WAS CHANGED, it gets no checkpoint any more: %s", error)
        _find_out(chain)


@contextmanager
def _on_its_own(what: str) -> Iterator[None]:
    """Whatever goes wrong is logged; only a store or signer that is away would go wrong with every one."""
    try:
        yield
    except (StoreError, SignerUnavailable):
        raise
    except Exception:
        logger.exception("%s waits for the next run", what)


def check_audit(check_id: int) -> None:
    """One turn of a check; a store that is away is asked again by the sweep."""
    try:
        carry_on(check_id=check_id)
    except StoreError as error:
        logger.warning("check %s of the audit log goes on later: %s", check_id, error)


def _find_out(chain: str) -> None:
    """Have people who look at the log see what is wrong with it, and where."""
    actor, tenant = system_actor("checkpoints"), None if chain == PLATFORM_CHAIN else chain
    state = chain_state(actor=actor, tenant=tenant)
    if not state.finding and state.running is None:
        begin_check(actor=actor, tenant=tenant)
