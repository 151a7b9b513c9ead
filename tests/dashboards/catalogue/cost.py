"""Money and power."""

from __future__ import annotations

from tests.dashboards.model import NODE, Board, Panel, Row, stat

MONEY = "{{instance}} {{currency}}"

BOARD = Board(
    "cost",
    "Gaudi 3 cost",
    "What jobs with a price have cost, what they will have cost, and what is paid for and not used.",
    [
        Row(
            "Money",
            [
                stat(
                    "Money so far",
                    "Of the running jobs, over all their restarts.",
                    "sum by (currency) (gaudi_cost_spent{@training})",
                    legend="{{currency}}",
                ),
                stat(
                    "Money in the end",
                    "So far, and the steps that are left at the pace of the last half hour.",
                    "sum by (currency) (instance:gaudi_cost_forecast:currency{@training})",
                    legend="{{currency}}",
                    alerts=("CostBudgetEndsFirst",),
                ),
                stat(
                    "Budget left",
                    "Below 0 where it is exceeded.",
                    "sum by (currency) (gaudi_cost_budget_left{@training})",
                    legend="{{currency}}",
                    alerts=("CostBudgetNearlySpent", "CostBudgetSpent"),
                ),
                stat(
                    "Price of an hour",
                    "Of all nodes that are paid for.",
                    "sum by (currency) (gaudi_cost_price_per_hour{@training})",
                    legend="{{currency}}",
                ),
                Panel(
                    "Spent, and its budget",
                    "Of each job.",
                    {
                        f"{MONEY} spent": "gaudi_cost_spent{@training}",
                        f"{MONEY} budget": "gaudi_cost_budget{@training}",
                    },
                    alerts=("CostBudgetNearlySpent", "CostBudgetSpent"),
                ),
                Panel(
                    "Which ends first",
                    "Time for which the budget pays, and time that the training needs.",
                    {
                        "{{instance}} money": "instance:gaudi_cost_money_left:seconds{@training}",
                        "{{instance}} training": "instance:gaudi_training_left:seconds{@training}",
                    },
                    "s",
                    alerts=("CostBudgetEndsFirst",),
                ),
                Panel(
                    "What the money went into",
                    "Training itself, and all that is not.",
                    {"{{part}}": "sum by (part) (gaudi_cost_part_spent{@training})"},
                    stacked=True,
                    alerts=("TrainingGoodputLow",),
                ),
                Panel(
                    "Money per million tokens",
                    "Whose learning was kept.",
                    {MONEY: "gaudi_cost_per_million_tokens{@training}"},
                ),
                Panel(
                    "Money lost to restarts",
                    "Steps that were computed twice, and the time between processes.",
                    {MONEY: 'gaudi_cost_part_spent{@training, part="restart_loss"}'},
                ),
                Panel(
                    "Share that trained",
                    "Of the time of the last hour.",
                    {NODE: "instance:gaudi_training_goodput:ratio1h{@training}"},
                    "percentunit",
                    highest=1,
                    alerts=("TrainingGoodputLow",),
                ),
            ],
        ),
        Row(
            "Paid for",
            [
                Panel(
                    "Power of the cards",
                    "Without their hosts.",
                    {NODE: "sum by (instance) (card:habanalabs_power:watts{@hpu})"},
                    "watt",
                    stacked=True,
                ),
                Panel(
                    "Cards that are held and idle",
                    "A tenth of their memory is in use, and less than 5 % of their time.",
                    {
                        NODE: "instance:habanalabs_cards_held_idle:count{@hpu}"
                        " or 0 * instance:habanalabs_cards:count{@hpu}"
                    },
                    alerts=("HpuHeldIdle",),
                ),
                Panel(
                    "Nodes out of service",
                    "No job may start on them.",
                    {"nodes": "sum(gaudi_health_out_of_service{@node})"},
                    alerts=("NodeOutOfServiceLong",),
                ),
            ],
        ),
    ],
)
