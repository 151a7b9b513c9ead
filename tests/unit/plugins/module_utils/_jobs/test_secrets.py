"""Secrets in what a job is given, by their names and by their values: refused, never shown, and scrubbed alike."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._health.scrub import scrub
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import problems
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.secrets import secret_of_arguments
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec

MADE_UP = "a1B2c3D4e5F6g7H8i9J0k1L2"
VALUES = [
    "postgres://me:hunter2@db/x",
    *(f"{begins}{MADE_UP}" for begins in ("hf_", "ghp_", "github_pat_", "glpat-", "sk-", "sk-proj-", "hvs.", "npm_")),
    f"xoxb-{MADE_UP}",
    "-----BEGIN RSA PRIVATE KEY-----",
    f"Bearer {MADE_UP}",
    f"eyJhbGciOiJI.{MADE_UP}.{MADE_UP}",
    f"https://files/x?token={MADE_UP}",
    f"Server=db;Password={MADE_UP}",
    f'{{"password": "{MADE_UP}"}}',
    # A place that opens with what stands in its address: signed by Azure, AWS and Google, a webhook, a token as a user.
    f"https://a.blob.core.windows.net/c/x?sv=2022-11-02&sp=r&sig={MADE_UP}%3D",
    f"BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=2022&sig={MADE_UP}",
    f"https://b.s3.amazonaws.com/k?X-Amz-Credential=x&X-Amz-Signature={MADE_UP}",
    f"https://storage.googleapis.com/b/k?X-Goog-Signature={MADE_UP}&x=1",
    f"https://hooks.slack.com/services/T0/B0/{MADE_UP}",
    f"https://discord.com/api/webhooks/123/{MADE_UP}",
    f"https://{MADE_UP.lower()}{MADE_UP.lower()}@github.com/o/r",
    f"git+https://{MADE_UP}@git.example.com/o/r",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    *(f"{begins}{MADE_UP}" for begins in ("nvapi-", "gsk_", "xai-", "r8_", "sk_live_", "lsv2_pt_", "tskey-auth-")),
    f"SG.{MADE_UP}.{MADE_UP}",
    f"Authorization: Token {MADE_UP}",
    f"X-Auth-Header: Token {MADE_UP}",
]
NAMES = [
    "GITHUB_PAT",
    "PGPASS",
    "HFTOKEN",
    "PGPASSWORD",
    "DB_PASS",
    "MYSQL_PWD",
    "VAULT_SECRET_ID",
    "apiKey",
    "GH_TOKEN",
    "HTTP_AUTHORIZATION",
    "SSH_PRIVATEKEY",
    "AZURE_SAS",
    "LOGIN_PASSCODE",
    "SESSION_COOKIE",
]
HARMLESS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "PATH": "/a:/b", "PWD": "/srv", "EOS_TOKEN": "</s>", "MAX_TOKENS": "8",
    "BYPASS": "1", "REPOSITORY": "ssh://git@github.com/x", "PROXY": "http://proxy:3128", "DATA": "s3://bucket/key",
    "FOLDER": "/data/hf_checkpoints", "MODEL": "sk-learn-pipeline-a", "GOOGLE_APPLICATION_CREDENTIALS": "/etc/a.json",
    "HF_TOKEN_PATH": "/etc/token", "DIGEST": "sha256:" + "a" * 64, "TEXT_KEY": "text",
    "SIGNATURE": "serving_default", "CLONE": "https://git@github.com/o/r", "USER_AT": "https://me.and-you@host/x",
    "WEBHOOK": "https://hooks.example.com/services", "SIG": "SIGTERM", "AUTH": "munge", "NAME": "gsk_model-a",
    "COOKIECUTTER": "x", "SASREC": "1",
}  # fmt: skip


def job(**options: object) -> JobSpec:
    params = {"name": "demo", "config": {}, "nodes": ["a"], "head_address": "10.0.0.1", "command": [], **options}
    defaults = {each: getattr(JobSpec, each, None) for each in JobSpec.__dataclass_fields__}
    return JobSpec.from_params({**defaults, "environment": {}, "environment_files": [], **params})


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_is_a_secret_is_refused_wherever_it_is_given(value: str) -> None:
    given = [
        {"environment": {"SETTING": value}},
        {"command": ["/srv/a.py", value]},
        {"command": ["/srv/a.py", "--setting=" + value]},
        {"config": {"data": {"source": value}}},
        {"config": {"tracking": {"loggers": [{"class_path": "x", "init_args": {"url": value}}]}}},
    ]
    for options in given:
        with pytest.raises(ValueError, match="environment_files") as caught:
            job(**options)
        said = str(caught.value)
        assert value not in said and MADE_UP not in said and "hunter2" not in said
        assert secret_of_arguments(options) == said, "the controller refuses it before it is sent"
        (problem,) = problems.job_problems(problems.Asked.of({**ASKED, **options}), "a", {})
        assert "trainer_environment_files" in problem and value not in problem
    assert secret_of_arguments({"node_config": {"a": [value]}})
    scrubbed = scrub(f"before {value} after")
    assert MADE_UP not in scrubbed and "hunter2" not in scrubbed


ASKED = {"name": "demo", "nodes": ["a"], "head": "a", "processes": 1, "script": "/srv/a.py"}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_secret_is_one_in_each_place(name: str) -> None:
    for options, key in (
        ({"environment": {name: "hunter2"}}, name),
        ({"command": ["/srv/a.py", f"--{name}", "hunter2"]}, name),
        ({"command": ["/srv/a.py", f"--{name}=hunter2"]}, name),
        ({"config": {"a": {name: "hunter2"}}}, f"config.a.{name}"),
    ):
        said = secret_of_arguments(options)
        assert said is not None and key in said and "hunter2" not in said
        with pytest.raises(ValueError, match="environment_files"):
            job(**options)
    assert "hunter2" not in scrub(f"{name}=hunter2")


def test_what_is_no_secret_is_let_through() -> None:
    words = [word for name, value in HARMLESS.items() for word in (f"--{name.lower()}", value)]
    job(environment=HARMLESS)
    job(command=["/srv/a.py", *words, "--sort-key", "date", "--eos_token=</s>", "--metrics.key=/etc/a.key"])
    job(config={"data": {**HARMLESS, "bos_token": "<s>"}, "metrics": {"key": "/etc/gaudi3-scale/trainer/metrics.key"}})
    assert problems.job_problems(problems.Asked.of({**ASKED, "environment": HARMLESS}), "a", {}) == []


@pytest.mark.parametrize("odd", [None, "", 5, [1], {"a": None}, {1: {2: [3]}}])
def test_options_of_another_kind_hold_none(odd: object) -> None:
    assert secret_of_arguments(dict.fromkeys(("environment", "command", "config", "node_config"), odd)) is None


def test_the_headers_for_a_receiver_of_traces_are_a_secret_and_paths_of_keys_are_none() -> None:
    """A header may have any name, and its value any form."""
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"):
        refused = secret_of_arguments({"environment": {name: "x-team=red"}})
        assert refused is not None and name in refused and "x-team" not in refused and "environment_files" in refused
    harmless = {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://traces.example.com:4318",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "/etc/ssl/mine.crt",
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/etc/ssl/mine.key",
    }
    assert secret_of_arguments({"environment": harmless}) is None
    assert secret_of_arguments({"environment": {"OTEL_EXPORTER_OTLP_CLIENT_KEY": "MIIEvQIBADANBgkq"}}) is not None
