"""`python -m gateway.spans`: sends the spans that a gateway writes to its standard input; ends when that does.

OpenTelemetry's own variables say where to (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` …).
"""

import logging
import os
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from gateway.spans.export import export_lines


def main() -> None:
    """Until the gateway closes its end."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    # The gateway reads the answers there: whatever a library has to say goes to the log.
    tell = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    export_lines(sys.stdin.fileno(), OTLPSpanExporter(), tell=tell)


if __name__ == "__main__":
    main()
