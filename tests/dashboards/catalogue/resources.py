"""Cards and hosts."""

from __future__ import annotations

from tests.dashboards.model import CARD, NODE, Board, Panel, Row

BOARD = Board(
    "resources",
    "Gaudi 3 resources",
    "Cards and hosts: load, memory, heat, power and disks.",
    [
        Row(
            "Cards",
            [
                Panel(
                    "Utilization",
                    "As the card counts it. A card that waits in a collective counts as busy.",
                    {CARD: "habanalabs_utilization{@hpu}"},
                    "percent",
                    highest=100,
                ),
                Panel(
                    "Memory used",
                    "Of each card.",
                    {CARD: "habanalabs_memory_used_bytes{@hpu}"},
                    "bytes",
                ),
                Panel(
                    "Held and idle",
                    "Cards of which a tenth of the memory is in use and less than 5 % of the time.",
                    {
                        NODE: "instance:habanalabs_cards_held_idle:count{@hpu}"
                        " or 0 * instance:habanalabs_cards:count{@hpu}"
                    },
                    alerts=("HpuHeldIdle",),
                ),
                Panel(
                    "Temperature",
                    "Of the chip. A reading that failed, which Intel's exporter writes as 0, is left out.",
                    {CARD: "habanalabs_temperature_onchip{@hpu} > 0"},
                    "celsius",
                    alerts=("HpuTemperatureHigh", "HpuReadingImpossible"),
                ),
                Panel(
                    "Power",
                    "Both rails of each card, or one where the exporter tells no more; and the lowest limit.",
                    {
                        CARD: "card:habanalabs_power:watts{@hpu}",
                        "limit": "min(habanalabs_power_default_limit_mW{@hpu} > 0) / 1000",
                    },
                    "watt",
                ),
                Panel(
                    "Slowed down",
                    "Violations that hl-smi counts, by cause.",
                    {"{{instance}} card {{id}} {{cause}}": "delta(gaudi_card_throttle_violation{@hpu}[5m])"},
                    alerts=("HpuThrottled",),
                ),
                Panel(
                    "Memory errors that were corrected",
                    "In the last hour, by card and kind.",
                    {"{{instance}} card {{id}} {{kind}}": "card:gaudi_card_ecc_corrected:increase1h{@hpu}"},
                    alerts=("HpuMemoryErrorsRising", "HpuEccOff"),
                ),
                Panel(
                    "Memory errors that were not",
                    "Since the driver was loaded.",
                    {
                        CARD: "sum by (instance, id) (increase(gaudi_card_ecc_errors_total"
                        '{@hpu, kind="uncorrected", span="volatile"}[$__rate_interval]))'
                    },
                    alerts=("HpuMemoryErrorUncorrected",),
                ),
                Panel(
                    "Rows that wait to be replaced",
                    "1 for a card whose next reset replaces rows of its memory. Of Intel's exporter alone.",
                    {CARD: "habanalabs_pending_rows_state{@hpu}"},
                    width=12,
                    alerts=("HpuRowReplacementPending",),
                ),
                Panel(
                    "Time to read the cards",
                    "That hl-smi took for it.",
                    {"{{instance}} {{reading}}": "gaudi_hpu_exporter_read_seconds{@hpu}"},
                    "s",
                    width=12,
                    alerts=("HpuReadingFailed", "ScrapeSlow"),
                ),
            ],
        ),
        Row(
            "Hosts",
            [
                Panel(
                    "Processors busy",
                    "Share of all processors' time.",
                    {NODE: "instance:node_cpu_busy:ratio{@node}"},
                    "percentunit",
                    highest=1,
                ),
                Panel(
                    "Memory used",
                    "Share of the host's memory that cannot be had without swapping.",
                    {NODE: "instance:node_memory_used:ratio{@node}"},
                    "percentunit",
                    highest=1,
                    alerts=("NodeMemoryLow",),
                ),
                Panel(
                    "Fullest file system",
                    "Share of its space.",
                    {NODE: "1 - min by (instance) (mountpoint:node_filesystem_free:ratio{@node})"},
                    "percentunit",
                    highest=1,
                    alerts=("NodeFilesystemFull", "NodeFilesystemFillsUp", "NodeFilesystemReadonly"),
                ),
                Panel(
                    "Disks",
                    "Read and written.",
                    {
                        "{{instance}} read": "sum by (instance)"
                        " (rate(node_disk_read_bytes_total{@node}[$__rate_interval]))",
                        "{{instance}} written": "sum by (instance)"
                        " (rate(node_disk_written_bytes_total{@node}[$__rate_interval]))",
                    },
                    "Bps",
                ),
                Panel(
                    "Waiting for disks",
                    "Share of time in which a process waited for input or output.",
                    {NODE: "rate(node_pressure_io_waiting_seconds_total{@node}[$__rate_interval])"},
                    "percentunit",
                ),
                Panel(
                    "Load",
                    "Processes that run or wait, over one minute.",
                    {NODE: "node_load1{@node}"},
                ),
                Panel(
                    "Text files that cannot be read",
                    "1 where the node exporter met one. What it says, such as a verdict on the node, may be missing.",
                    {NODE: "node_textfile_scrape_error{@node}"},
                    width=12,
                    alerts=("NodeTextfileUnread",),
                ),
                Panel(
                    "Errors of the node exporter",
                    "Each second, by cause. A page that was made with errors lacks series.",
                    {
                        "{{instance}} {{cause}}": "sum by (instance, cause)"
                        " (rate(promhttp_metric_handler_errors_total{@node}[$__rate_interval]))",
                    },
                    "cps",
                    width=12,
                    alerts=("NodeExporterErrors",),
                ),
            ],
        ),
    ],
)
