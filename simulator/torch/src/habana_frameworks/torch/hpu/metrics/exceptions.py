"""What can be wrong with a metric."""


class MetricNotFound(Exception):
    """There is no metric of this name."""


class InvalidMetricDumpFileFormat(Exception):
    """Files of metrics are json or text."""


class InvalidMetricDumpTrigger(Exception):
    """Nothing of this name makes a file of metrics be written."""
