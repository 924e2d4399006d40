"""The log as a file: what the filters leave of it, or the whole chain. It writes a record, so it is a POST."""

import csv
import json
from collections.abc import Iterable, Iterator
from typing import Final

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from registry.errors import InvalidInput
from registry.models import AuditRecord
from registry.permissions import Action
from registry.services.audit.exports import audit_document, export_audit
from registry.services.audit.search import ALLOWED, DENIED
from registry.web.audit.filters import FiltersForm, wanted_of
from registry.web.audit.listing import is_denied
from registry.web.audit.pages import LogPage
from registry.web.audit.texts import cell

_COLUMNS: Final = (
    *("chain", "seq", "at", "actor_kind", "actor_id", "actor_name", "token", "action", "object_kind", "object_id"),
    *("object_name", "outcome", "reason", "before", "after", "request_id", "source", "how", "prev_hash", "hash"),
)
# Spreadsheets take a file without it for one of another time.
_MARK: Final = "\ufeff"


class ExportPage(LogPage):
    actions = {"post": Action.READ_AUDIT}

    def post(self, request: HttpRequest, tenant: str | None = None) -> HttpResponseBase:
        form = FiltersForm(request.POST)
        if not form.is_valid():
            field, errors = next(iter(form.errors.items()))
            raise InvalidInput(str(errors[0]), field=field)
        kind = "csv" if request.POST.get("form") == "csv" else "jsonl"
        wanted = wanted_of(form.cleaned_data)
        records = export_audit(actor=self.actor, tenant=self.log_of, wanted=wanted, form=kind)
        lines = csv_lines(records) if kind == "csv" else json_lines(records)
        content = "text/csv; charset=utf-8" if kind == "csv" else "application/x-ndjson"
        response = StreamingHttpResponse(lines, content_type=content)
        response["Content-Disposition"] = f'attachment; filename="audit-{self.chain}.{kind}"'
        return response


def json_lines(records: Iterable[AuditRecord]) -> Iterator[bytes]:
    for record in records:
        yield json.dumps(audit_document(record), ensure_ascii=False).encode() + b"\n"


def csv_lines(records: Iterable[AuditRecord]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield _MARK + str(writer.writerow(_COLUMNS))
    for record in records:
        yield str(writer.writerow([cell(value) for value in _fields(record)]))


def _fields(record: AuditRecord) -> tuple[object, ...]:
    actor, object_ = record.actor, record.object
    return (
        *(record.chain, record.seq, record.at.isoformat(), actor.get("kind", ""), actor.get("id", "")),
        *(actor.get("name", ""), actor.get("token", ""), record.action, object_.get("kind", "")),
        *(object_.get("id", ""), object_.get("name", ""), DENIED if is_denied(record) else ALLOWED, record.reason),
        *(_json(record.before), _json(record.after), record.request_id, record.source, record.how),
        *(record.prev_hash, record.hash),
    )


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


class _Echo:
    """Hands what is written to it back to who wrote."""

    def write(self, text: str) -> str:
        return text
