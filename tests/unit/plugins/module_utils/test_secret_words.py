"""Two lists of the forms of secrets: of the controller's refusals, and of the doctor, which runs alone on a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._secret_words import secret_kind
from gaudi3_doctor.host import Host
from gaudi3_doctor.scrub import scrubber

# Put together here, so that no file has anything that looks like a secret.
BODY = "Ab1" * 12
PREFIXES = [
    "hf_", *(f"gh{each}_" for each in "pousr"), "github_pat_",
    *(f"gl{each}-" for each in ("pat", "dt", "rt", "cbt", "ptt", "ft", "soat")), *(f"xox{each}-" for each in "abeprs"),
    "xapp-", "pypi-", "dckr_pat_", "dckr_oat_", "hvs.", "hvb.", "ya29.", "dop_v1_", "wandb_v1_", "sk-", "npm_", "AIza",
    "nvapi-", "gsk_", "xai-", "r8_", "sk_live_", "rk_test_", "lsv2_pt_", "lsv2_sk_", "tskey-",
]  # fmt: skip
SECRETS = {
    **{prefix: f"{prefix}{BODY}" for prefix in PREFIXES},
    "dapi": "dapi" + "0a1b" * 8,
    "SG": f"SG.{BODY[:20]}.{BODY}",
    "JWT": f"eyJ{BODY}.{BODY}.{BODY}",
    "bearer": f"Bearer {BODY}",
    "key": "-----BEGIN " + f"PRIVATE KEY-----\n{BODY}",
    "signed": f"https://x.example/a?sig={BODY}",
    "slack": "https://hooks.slack" + f".com/services/{BODY}",
    "discord": "https://discord" + f".com/api/webhooks/1/{BODY}",
    "teams": "https://x.webhook.office" + f".com/webhookb2/{BODY}",
    "user": f"https://{BODY}@x.example/a",
    "scheme": f"X-Auth: Token {BODY}",
    "hash": f"$6${BODY[:8]}${BODY}",
}


@pytest.mark.parametrize("form", SECRETS)
def test_a_form_that_one_knows_the_other_knows(form: str, tmp_path: Path) -> None:
    text = SECRETS[form]
    assert secret_kind(text) != ""
    cleaned = scrubber(Host(root=str(tmp_path)))(f"before {text} after")
    assert BODY not in cleaned and text not in cleaned
