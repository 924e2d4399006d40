"""Spans of requests for OpenTelemetry, where that is set: made after the answer, sent by a process of their own."""
