# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What the page of a service answers on its own host, over TLS and with its password."""

from __future__ import annotations

import base64
import json
import ssl
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from .._printable import printable

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "url": {"type": "str", "required": True},
    "username": {"type": "str", "default": ""},
    # The answer does not have it, and masking it there would mask words that are the same.
    "password": {"type": "str", "default": "", "no_log": False},
    "authority": {"type": "path", "required": True},
    "timeout": {"type": "int", "default": 10},
    "tries": {"type": "int", "default": 1},
    "delay": {"type": "int", "default": 2},
    "targets": {"type": "list", "elements": "str", "default": []},
    "quiet": {"type": "list", "elements": "str", "default": []},
}
_MOST = 64 << 20


def run(module: AnsibleModule) -> dict[str, Any]:
    """Ask until it answers and knows its targets; for the last time after ``tries``."""
    options = module.params
    for left in range(options["tries"] - 1, -1, -1):
        answer = _asked(options)
        if answer["status"] == 200 and not answer["missing"]:
            return {"changed": False, **answer}
        if left:
            time.sleep(options["delay"])
    lacks = f"does not know {', '.join(answer['missing'])}" if answer["status"] == 200 else None
    module.fail_json(msg=f"{options['url']} {lacks or 'does not answer: ' + answer['reason']}.", **answer)
    raise AssertionError  # of an AnsibleModule, it does not return


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    """Status, why there is no other, targets that it does not know, and those that did not answer it."""
    request = Request(options["url"])
    if options["username"]:
        word = base64.b64encode(f"{options['username']}:{options['password']}".encode()).decode()
        request.add_header("Authorization", f"Basic {word}")
    answer: dict[str, Any] = {"status": -1, "reason": "", "missing": [], "silent": []}
    try:
        with open(options["authority"], encoding="ascii") as file:
            context = ssl.create_default_context(cadata=file.read())
        # A proxy is for other hosts than this one.
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
        with opener.open(request, timeout=options["timeout"]) as page:
            text = page.read(_MOST)
            answer["status"] = int(page.status)
    except HTTPError as error:
        return {**answer, "status": error.code, "reason": f"status {error.code}"}
    except (URLError, OSError, ValueError) as error:
        return {**answer, "reason": printable(getattr(error, "reason", error), 200)}
    return {**answer, **_targets(text, options)} if "/targets" in options["url"] else answer


def _targets(text: bytes, options: dict[str, Any]) -> dict[str, Any]:
    """From what Prometheus says of its targets, each as job/host."""
    try:
        found = [
            (str(each["labels"]["job"]), str(each["labels"]["instance"]), each.get("health"))
            for each in json.loads(text)["data"]["activeTargets"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"status": -1, "reason": "it says of its targets what cannot be read"}
    known = {f"{job}/{host}" for job, host, _health in found}
    down = [f"{job}/{host}" for job, host, health in found if health == "down" and job not in options["quiet"]]
    return {"missing": [each for each in options["targets"] if each not in known], "silent": sorted(down)}
