"""All nodes at a glance, and the monitoring itself."""

from __future__ import annotations

from tests.dashboards.model import NODE, Board, Panel, Row, stat

BOARD = Board(
    "fleet",
    "Gaudi 3 fleet",
    "All nodes at a glance: who answers, what fires, how much is in use.",
    [
        Row(
            "Now",
            [
                stat(
                    "Nodes that answer",
                    "Whose node exporter answered the last scrape.",
                    "sum(up{@node})",
                    alerts=("NodeDown",),
                ),
                stat(
                    "Cards",
                    "On the pages of the HPU exporters. A node has 8.",
                    "sum(instance:habanalabs_cards:count{@hpu})",
                    alerts=("HpuCardMissing", "HpuNoCards", "HpuExporterDown"),
                ),
                stat(
                    "Ports down",
                    "Network ports of cards, internal and external, that have no link.",
                    "sum(instance:habanalabs_ports_down:count{@hpu})",
                    limits=(1, 1),
                    alerts=("HpuInternalPortDown", "HpuExternalPortDown"),
                ),
                stat(
                    "Power of all cards",
                    "What the cards draw together, without their hosts.",
                    "sum(card:habanalabs_power:watts{@hpu})",
                    "watt",
                ),
                Panel(
                    "Alerts that fire",
                    "Of the whole cluster. Watchdog always does, to show that alerts arrive.",
                    {"{{alertname}}": 'count by (alertname) (ALERTS{cluster=~"$cluster", alertstate="firing"})'},
                    kind="bargauge",
                    alerts=("Watchdog",),
                ),
                Panel(
                    "Utilization",
                    "Mean of each node's cards.",
                    {NODE: "instance:habanalabs_utilization:avg{@hpu}"},
                    "percent",
                    kind="bargauge",
                    highest=100,
                    alerts=("HpuHeldIdle",),
                ),
                Panel(
                    "Progress of jobs",
                    "Optimizer steps done, of those that the job has.",
                    {NODE: "gaudi_training_step{@training} / gaudi_training_max_steps{@training}"},
                    "percentunit",
                    kind="bargauge",
                    highest=1,
                    alerts=("TrainingStalled",),
                ),
            ],
        ),
        Row(
            "Nodes",
            [
                Panel(
                    "Who answers",
                    "1 for each node that does.",
                    {NODE: "up{@node}"},
                    alerts=("NodeDown",),
                ),
                Panel(
                    "Time since boot",
                    "A fall is a boot.",
                    {NODE: "time() - node_boot_time_seconds{@node}"},
                    "s",
                    alerts=("NodeRebooted",),
                ),
                Panel(
                    "Units that failed",
                    "Of systemd, with a name that begins with gaudi.",
                    {NODE: 'sum by (instance) (node_systemd_unit_state{@node, state="failed"})'},
                    alerts=("NodeServiceFailed",),
                ),
                Panel(
                    "Units that are being started",
                    "As above. A sender of logs that does not reach its collector is one most of the time.",
                    {NODE: 'sum by (instance) (node_systemd_unit_state{@node, state="activating"})'},
                    alerts=("NodeLogsNotSent",),
                ),
                Panel(
                    "Verdicts",
                    "Of the nodes' own examinations, by severity.",
                    {"{{severity}}": "sum by (severity) (gaudi_health_verdicts{@node})"},
                    alerts=("NodeUnfitForWork",),
                ),
                Panel(
                    "Out of service",
                    "Nodes on which no job may start.",
                    {"nodes": "sum(gaudi_health_out_of_service{@node})"},
                    alerts=("NodeOutOfServiceLong",),
                ),
                Panel(
                    "Time since the last examination",
                    "Each node examines itself every few minutes.",
                    {NODE: "time() - gaudi_health_examination_timestamp_seconds{@node}"},
                    "s",
                    alerts=("NodeExaminationOld",),
                ),
                Panel(
                    "Time since the last good backup",
                    "Of machines with the role backup, and of the controller, by the monitoring host with its page.",
                    {
                        NODE: "time() - gaudi_backup_finished_timestamp_seconds{@node}",
                        "controller, by {{instance}}": "time()"
                        " - gaudi_backup_controller_finished_timestamp_seconds{@node}",
                    },
                    "s",
                    alerts=("BackupOld", "BackupFailed", "BackupMissing"),
                ),
                Panel(
                    "Cards by driver",
                    "Two versions are one too many, but for an upgrade.",
                    {"{{driver}}": "count by (driver) (habanalabs_device_config{@hpu})"},
                    alerts=("HpuDriverMismatch",),
                ),
                Panel(
                    "Cards by firmware",
                    "Boot loader and kernel. Two versions are one too many, but for an upgrade.",
                    {"{{fit}} {{spi}}": "count by (fit, spi) (habanalabs_device_config{@hpu})"},
                    alerts=("HpuFirmwareMismatch",),
                ),
                Panel(
                    "Clock",
                    "1 for each node whose clock is synchronized.",
                    {NODE: "node_timex_sync_status{@node}"},
                    alerts=("NodeClockUnsynchronized",),
                ),
            ],
        ),
        Row(
            "Monitoring",
            [
                Panel(
                    "Time to answer",
                    "That the HPU exporters take. Prometheus gives up after 10 seconds.",
                    {NODE: "scrape_duration_seconds{@hpu}"},
                    "s",
                    width=12,
                    alerts=("ScrapeSlow",),
                ),
                Panel(
                    "Until certificates end",
                    "Of the services on the monitoring host. The roles renew them 30 days before.",
                    {
                        "{{service}}": "min by (service) (gaudi_certificate_expiry_timestamp_seconds{@services})"
                        " - time()",
                    },
                    "s",
                    width=12,
                    alerts=("CertificateExpires", "CertificateEndsSoon"),
                ),
                Panel(
                    "Servers that answer",
                    "1 for each Prometheus and Alertmanager that does. Without the second no alert reaches anybody.",
                    {
                        "Prometheus on {{instance}}": "up{@prometheus}",
                        "Alertmanager on {{instance}}": "up{@alertmanager}",
                    },
                    alerts=("AlertmanagerDown",),
                ),
                Panel(
                    "Alerts that are lost",
                    "Not handed to Alertmanager, or not delivered by it, each second.",
                    {
                        "not handed over by {{instance}}": "sum by (instance)"
                        " (rate(prometheus_notifications_dropped_total{@prometheus}[$__rate_interval]))",
                        "not delivered by {{integration}}": "sum by (integration)"
                        " (rate(alertmanager_notifications_failed_total{@alertmanager}[$__rate_interval]))",
                    },
                    "cps",
                    alerts=("AlertNotificationsFailing", "PrometheusNotificationsDropped"),
                ),
                Panel(
                    "Configuration in use",
                    "1 where Prometheus runs its newest configuration. Where it refused that, it runs the one before.",
                    {NODE: "prometheus_config_last_reload_successful{@prometheus}"},
                    alerts=("PrometheusConfigReloadFailed",),
                ),
                Panel(
                    "Pages that are refused",
                    "Since they have more than prometheus_scrape_limits allows, each second.",
                    {
                        "samples": "sum(rate(prometheus_target_scrapes_exceeded_sample_limit_total{@prometheus}"
                        "[$__rate_interval]))",
                        "size": "sum(rate(prometheus_target_scrapes_exceeded_body_size_limit_total{@prometheus}"
                        "[$__rate_interval]))",
                        "labels": "sum(rate(prometheus_target_scrape_pool_exceeded_label_limits_total{@prometheus}"
                        "[$__rate_interval]))",
                    },
                    "cps",
                    width=12,
                    alerts=("ScrapeLimitExceeded",),
                ),
                Panel(
                    "Rules that could not be evaluated",
                    "By group, each second. Alerts of such a group may not fire.",
                    {
                        "{{rule_group}}": "sum by (rule_group)"
                        " (rate(prometheus_rule_evaluation_failures_total{@prometheus}[$__rate_interval]))",
                    },
                    "cps",
                    width=12,
                    alerts=("PrometheusRuleFailures",),
                ),
            ],
        ),
    ],
)
