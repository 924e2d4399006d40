"""Request records, and the marks that answers get, on their way to the database. Bodies are never in them."""

from gateway.records.shapes import MarkRecord, RequestRecord, ShadowRecord
from gateway.records.spool import Spool
from gateway.records.writer import RecordWriter

__all__ = ["MarkRecord", "RecordWriter", "RequestRecord", "ShadowRecord", "Spool"]
