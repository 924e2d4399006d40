"""Looking after the audit log: what could not be told at once, and the signed checkpoints that are due."""

import logging

from registry.actors import system_actor
from registry.errors import AuditBroken, SignerUnavailable
from registry.services.audit.checkpoints import chains_due, make_checkpoint
from registry.services.audit.denials import tell_notices
from registry.stores.errors import StoreError

logger = logging.getLogger(__name__)


def keep_audit() -> None:
    """One pass. What is wrong with one chain stops no other; a store or signer that is away is asked again later."""
    tell_notices()
    for chain in chains_due():
        try:
            make_checkpoint(actor=system_actor("checkpoints"), chain=chain)
        except (StoreError, SignerUnavailable) as error:
            logger.warning("the audit log of %s and others get their checkpoint later: %s", chain, error)
            return
        except AuditBroken as error:
            # The loudest thing that this system can say, again at each run until somebody looks.
            logger.critical("THE AUDIT LOG WAS CHANGED, it gets no checkpoint any more: %s", error)
        except Exception:
            logger.exception("the audit log of %s gets its checkpoint at the next run", chain)
