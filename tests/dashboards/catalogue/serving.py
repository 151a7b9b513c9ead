"""What is asked of served models, and how they answer."""

from __future__ import annotations

from tests.dashboards.model import Board, Panel, Row, stat

REPLICA = "{{instance}} {{replica}}"


def quantile(name: str, share: float) -> str:
    """A quantile of a histogram of vLLM, by replica."""
    return (
        f"histogram_quantile({share}, sum by (instance, replica, le)"
        f" (rate(vllm:{name}_bucket{{@serving}}[$__rate_interval])))"
    )


BOARD = Board(
    "serving",
    "Gaudi 3 serving",
    "Who asks, how fast the replicas answer, and what holds them up.",
    [
        Row(
            "Now",
            [
                stat(
                    "Ready replicas",
                    "That the balancers give requests to.",
                    'sum(haproxy_server_status{@serving, proxy="replicas", server=~"replica-.*", state="UP"})',
                    alerts=("ServingDown", "ServingReplicaDown"),
                ),
                stat("Running", "Requests that are being answered.", "sum(vllm:num_requests_running{@serving})"),
                stat(
                    "Waiting",
                    "Requests that no replica has begun.",
                    "sum(vllm:num_requests_waiting{@serving})",
                    limits=(1, 50),
                    alerts=("ServingQueued",),
                ),
                stat(
                    "Fullest cache",
                    "Of all replicas. Near 100 % requests begin again.",
                    "max(vllm:kv_cache_usage_perc{@serving})",
                    "percentunit",
                    limits=(0.8, 0.95),
                ),
            ],
        ),
        Row(
            "Answers",
            [
                Panel(
                    "Answers per second",
                    "By the class of their status, as users get them: 5xx after every replica was tried.",
                    {
                        "{{code}}": "sum by (code)"
                        ' (rate(haproxy_frontend_http_responses_total{@serving, proxy="api"}[$__rate_interval]))'
                    },
                    alerts=("ServingErrors",),
                ),
                Panel(
                    "Ends per second",
                    "How answers ended: length and stop are whole, abort and error are not.",
                    {
                        "{{finished_reason}}": "sum by (finished_reason)"
                        " (rate(vllm:request_success_total{@serving}[$__rate_interval]))"
                    },
                ),
                Panel(
                    "Tokens per second",
                    "Made, and of prompts.",
                    {
                        f"{REPLICA} made": "sum by (instance, replica)"
                        " (rate(vllm:generation_tokens_total{@serving}[$__rate_interval]))",
                        f"{REPLICA} prompts": "sum by (instance, replica)"
                        " (rate(vllm:prompt_tokens_total{@serving}[$__rate_interval]))",
                    },
                    alerts=("ServingStuck",),
                ),
            ],
        ),
        Row(
            "Times",
            [
                Panel(
                    "First token",
                    "From the request to its first token: median and 95th percentile.",
                    {
                        f"{REPLICA} median": quantile("time_to_first_token_seconds", 0.5),
                        f"{REPLICA} 95 %": quantile("time_to_first_token_seconds", 0.95),
                    },
                    "s",
                ),
                Panel(
                    "Next token",
                    "From a token to the next: 95th percentile.",
                    {REPLICA: quantile("inter_token_latency_seconds", 0.95)},
                    "s",
                ),
                Panel(
                    "Whole answer, and the wait before it",
                    "95th percentiles.",
                    {
                        f"{REPLICA} answer": quantile("e2e_request_latency_seconds", 0.95),
                        f"{REPLICA} wait": quantile("request_queue_time_seconds", 0.95),
                    },
                    "s",
                ),
            ],
        ),
        Row(
            "Cache",
            [
                Panel(
                    "Cache in use",
                    "Of each replica.",
                    {REPLICA: "max by (instance, replica) (vllm:kv_cache_usage_perc{@serving})"},
                    "percentunit",
                    width=12,
                ),
                Panel(
                    "Requests that began again",
                    "Their cache was given to others: too many sequences at once for it.",
                    {
                        REPLICA: "sum by (instance, replica)"
                        " (increase(vllm:num_preemptions_total{@serving}[$__rate_interval]))"
                    },
                    width=12,
                ),
            ],
        ),
    ],
)
