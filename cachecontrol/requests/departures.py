"""What a version still answered after an alias had left it."""

from datetime import timedelta
from typing import Any, Final

from django.db import connection

from releases.ports import Departure, LastAnswers

# No request runs for longer than this at any gateway that doesn't wait for ever.
_LONGEST: Final = timedelta(hours=1)

_ANSWERS: Final = """
WITH answers AS (
    SELECT r.at, r.at + r.total_ms * interval '1 millisecond' AS ended
    FROM gateway_request r
    WHERE r.version_id = %(version_id)s AND r.at >= %(earliest)s AND r.at < %(until)s AND NOT r.is_shadow
      AND r.error_kind = ''
      AND (r.tenant, r.alias) IN (SELECT n.tenant, n.alias FROM gateway_alias_names(%(alias_id)s) n)
)
SELECT max(ended) FILTER (WHERE ended >= %(asked_at)s),
       count(*) FILTER (WHERE at >= %(committed_at)s)
FROM answers
"""


def find_last_answers(departure: Departure) -> LastAnswers:
    """As far as gateways have recorded it by now; what failed, or was mirrored, answered nobody."""
    inputs: dict[str, Any] = {
        "alias_id": departure.alias_id,
        "version_id": departure.version_id,
        "earliest": departure.asked_at - _LONGEST,
        "asked_at": departure.asked_at,
        "committed_at": departure.committed_at,
        "until": departure.until,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERS, inputs)
        last_at, strays = cursor.fetchone()
    return LastAnswers(last_at=last_at, strays=strays)
