"""The phases of a job as spans of one trace, sent over OTLP; off by default.

`start.begin` makes the tracer of a process where `OTEL_TRACES_EXPORTER` is `otlp`, and `spans.current` gives it. Where
nobody asked for traces, a phase costs a call that does nothing, and no library is imported.
"""
