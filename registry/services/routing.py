"""The feed of changes that gateways follow: ``registry/sql/routing_changes.sql``."""

from datetime import timedelta
from typing import Final

from django.db import connection

# Gateways read every few seconds; one that was away for longer reads everything again.
KEPT_FOR: Final = timedelta(minutes=10)


def forget_old_changes() -> int:
    """Delete what every gateway in touch with the database has read; returns how many changes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT routing_forget(make_interval(secs => %s))", [KEPT_FOR.total_seconds()])
        row = cursor.fetchone()
    return int(row[0])
