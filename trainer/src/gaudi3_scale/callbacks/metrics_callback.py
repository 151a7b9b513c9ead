"""metrics.jsonl of a job."""

from __future__ import annotations

from gaudi3_scale.callbacks.base import Reporter


class MetricsCallback(Reporter):
    """A line where the loss is read, by each node's writer."""

    def report(self) -> None:
        if self.run.process_group.writer:
            progress = self.run.progress
            self.run.lines.append(progress, progress.learning_rate, progress.mean_loss)
