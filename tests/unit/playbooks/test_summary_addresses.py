"""Where the summary sends people: to the port that Prometheus has, and to the site's folder of secrets."""

from __future__ import annotations

from .jinja import render

NODE = {
    "ansible_facts": {"gaudi": {"card_count": 8, "driver_version": "1.23.0", "firmware": {}, "hl_smi_version": "1.23"}}
}


def test_the_address_of_prometheus_is_the_configured_one() -> None:
    given = {"prometheus_port": 9191, "gaudi_cluster_address": "10.0.0.9", "gaudi_secrets_dir": "/srv/secrets"}
    text = render(
        "playbooks/templates/summary.j2",
        ansible_play_hosts=["gaudi-1"],
        hostvars={"gaudi-1": NODE, "mon": given},
        groups={"gaudi": ["gaudi-1"], "gaudi_head": ["gaudi-1"], "monitoring": ["mon"]},
    )
    (line,) = (line for line in text.splitlines() if line.startswith("Prometheus: "))
    assert line == ("Prometheus: https://10.0.0.9:9191 (user prometheus, password and CA certificate in /srv/secrets)")
