"""Offline check of an exported audit log: no network, and nothing of the server's but how signatures are read.

Each record's hash is the SHA-256 of the previous record's hash, a line feed and the record's payload text. So a record
can't be changed, left out, added or moved without breaking the chain from there on. What a chain can't show is that its
end was cut off or that all of it was written anew: signed checkpoints show that, or a `head` noted earlier.
"""

from client.audit.checkpoints import read_checkpoints
from client.audit.records import GENESIS
from client.audit.verify import BadRecord, ChainVerdict, verify_export

__all__ = ["GENESIS", "BadRecord", "ChainVerdict", "read_checkpoints", "verify_export"]
