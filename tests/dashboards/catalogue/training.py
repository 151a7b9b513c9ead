"""How the training jobs learn."""

from __future__ import annotations

from tests.dashboards.model import NODE, Board, Panel, Row, stat

BOARD = Board(
    "training",
    "Gaudi 3 training",
    "How the training jobs learn, how fast, and what holds them up.",
    [
        Row(
            "Job",
            [
                stat(
                    "Progress",
                    "Optimizer steps done, of those that the job has.",
                    "max(gaudi_training_step{@training} / gaudi_training_max_steps{@training})",
                    "percentunit",
                    alerts=("TrainingStalled",),
                ),
                stat(
                    "Time left",
                    "Until the last step, at the pace of the last half hour. Nothing while it does not step.",
                    "max(instance:gaudi_training_left:seconds{@training})",
                    "s",
                ),
                stat(
                    "Goodput of the last hour",
                    "Share of the job's time that went into training itself.",
                    "min(instance:gaudi_training_goodput:ratio1h{@training})",
                    "percentunit",
                    alerts=("TrainingGoodputLow",),
                ),
                stat(
                    "Processes",
                    "That train together.",
                    "max(gaudi_training_world_size{@training})",
                ),
            ],
        ),
        Row(
            "Learning",
            [
                Panel(
                    "Loss",
                    "Training loss of the last logged steps, the loss on held-out data, and what a model reaches that"
                    " knows how often each token occurs and nothing of their order.",
                    {
                        NODE: "gaudi_training_loss{@training}",
                        "held out": "max(gaudi_training_validation_loss{@training})",
                        "frequencies alone": "max(gaudi_training_baseline_loss{@training})",
                    },
                    alerts=("TrainingLossNotFinite",),
                ),
                Panel(
                    "Gradient norm",
                    "Norm of all gradients of the last logged step, before clipping.",
                    {NODE: "gaudi_training_gradient_norm{@training}"},
                ),
                Panel(
                    "Steps left out",
                    "Their loss or gradients were not finite.",
                    {NODE: "increase(gaudi_training_skipped_steps_total{@training}[$__rate_interval])"},
                    alerts=("TrainingStepsSkipped",),
                ),
                Panel(
                    "Learning rate",
                    "Of the last logged step.",
                    {NODE: "gaudi_training_learning_rate{@training}"},
                ),
                Panel(
                    "Anomalies",
                    "Step time, data wait, compilations, memory creep and stragglers that the job itself has noticed.",
                    {
                        "{{kind}}": "sum by (kind)"
                        " (increase(gaudi_training_anomalies_total{@training}[$__rate_interval]))"
                    },
                    alerts=("TrainingAnomaly",),
                ),
                Panel(
                    "Steps done",
                    "A fall is a restart from a checkpoint.",
                    {NODE: "gaudi_training_step{@training}"},
                ),
            ],
        ),
        Row(
            "Speed",
            [
                Panel(
                    "Tokens per second",
                    "Tokens learnt by the processes of each node.",
                    {NODE: "instance:gaudi_training_tokens:rate5m{@training}"},
                    alerts=("TrainingSlower",),
                ),
                Panel(
                    "Step time",
                    "Median and 99th percentile of the wall time of a step, without checkpoints.",
                    {
                        "{{instance}} median": "instance:gaudi_training_step_seconds:p50_5m{@training}",
                        "{{instance}} 99 %": "instance:gaudi_training_step_seconds:p99_5m{@training}",
                    },
                    "s",
                ),
                Panel(
                    "Time at one place",
                    "For how long the first process of each node has been in one phase of its step.",
                    {"{{instance}} {{phase}}": "gaudi_training_phase_seconds{@training}"},
                    "s",
                    alerts=("TrainingWaits",),
                ),
                Panel(
                    "Where the time goes",
                    "Shares of wall time over the last minutes: training itself, and all that is not.",
                    {
                        "{{part}}": "avg by (part)"
                        " (rate(gaudi_training_goodput_seconds_total{@training}[$__rate_interval]))"
                    },
                    "percentunit",
                    stacked=True,
                    alerts=("TrainingGoodputLow",),
                ),
            ],
        ),
        Row(
            "Hangs",
            [
                Panel(
                    "Jobs that ended with a hang",
                    "How long ago that was found, and who held up the others, by the words of the job.",
                    {
                        "{{name}}: {{sentence}}": "time() - max by (name, sentence) "
                        '(gaudi_training_hang_timestamp_seconds{@node, state="failed"})'
                    },
                    "s",
                    kind="stat",
                    width=24,
                    alerts=("TrainingHung",),
                ),
            ],
        ),
        Row(
            "Checkpoints",
            [
                Panel(
                    "Age of the last checkpoint",
                    "What a failure would cost now.",
                    {NODE: "time() - gaudi_training_checkpoint_last_timestamp_seconds{@training}"},
                    "s",
                    alerts=("TrainingCheckpointOld",),
                ),
                Panel(
                    "Time spent on checkpoints",
                    "Share of wall time for which training stood still for them.",
                    {
                        NODE: "sum by (instance)"
                        " (rate(gaudi_training_checkpoint_stall_seconds_sum{@training}[$__rate_interval]))"
                    },
                    "percentunit",
                ),
                Panel(
                    "Failures to write",
                    "Checkpoints that could not be copied to their target, and reports that could not be written.",
                    {
                        "{{instance}} copies": "increase(gaudi_training_checkpoint_upload_failures_total{@training}"
                        "[$__rate_interval])",
                        "{{instance}} reports": "increase(gaudi_training_report_write_failures_total{@training}"
                        "[$__rate_interval])",
                    },
                    alerts=("TrainingUploadFailing", "TrainingReportsUnwritten"),
                ),
            ],
        ),
    ],
)
