"""The questions that the stand-in and the real vLLM answer alike, and what each has to answer.

From what was measured with 0.32.0; the model has room for 96 tokens. `differences` says in words what is otherwise.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .clients import Answer, Client

#: Names on the page of metrics that alerts and dashboards read.
METRICS = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting_by_reason",
    "vllm:kv_cache_usage_perc",
    "vllm:num_preemptions_total",
    "vllm:request_success_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:e2e_request_latency_seconds_bucket",
    "vllm:request_queue_time_seconds_bucket",
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:cache_config_info",
    "http_requests_total",
)


def answers(port: int, model: str) -> dict[str, Any]:
    """All answers of a server that is ready."""
    client = Client("127.0.0.1", port, model)
    with ThreadPoolExecutor(4) as pool:
        streams = [each.result() for each in client.streams(pool, 4, 24)]
    found: dict[str, Any] = {
        "health": client.ask("/health"),
        "models": client.ask("/v1/models"),
        "greedy": client.complete("To be", 24),
        "again": client.complete("To be", 24),
        "streams": streams,
        "wrong model": Client("127.0.0.1", port, "other").complete("To be", 4),
        "too long": client.complete("To be", 5000),
        "unknown path": client.ask("/no/such/path"),
        "chat": client.ask("/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "a"}]}),
    }
    found["metrics"] = client.ask("/metrics").body
    return found


def differences(found: dict[str, Any]) -> list[str]:
    """What is not as the role and its monitoring take it to be."""
    health, models, wrong, long = found["health"], found["models"], found["wrong model"], found["too long"]
    greedy: Answer = found["greedy"]
    streams: list[Answer] = found["streams"]
    missing = [name for name in METRICS if name not in found["metrics"]]
    checks = {
        f"/health is {health.status} with {health.body!r}": (health.status, health.body) == (200, ""),
        f"/v1/models has {models.body}": models.body["data"][0]["max_model_len"] == 96,
        f"24 tokens were asked for, and {len(greedy.tokens)} came": len(greedy.tokens) == 24 == greedy.usage,
        "a greedy answer differs the second time": greedy.tokens == found["again"].tokens,
        "a stream is not whole": all(each.whole and each.usage == 24 for each in streams),
        f"a wrong model is {wrong.status}": wrong.status == 404 and "does not exist" in str(wrong.body),
        f"a request that is too long is {long.status}": long.status == 400 and "96" in str(long.body),
        f"an unknown path is {found['unknown path'].status}": found["unknown path"].status == 404,
        f"a chat without a template is {found['chat'].status}": found["chat"].status == 400,
        f"metrics lack {missing}": not missing,
    }
    return [said for said, right in checks.items() if not right]
