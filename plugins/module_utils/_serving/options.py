# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Arguments and variables that a user gives vLLM beside the role's own, looked at before anything starts.

An argument that the role gives itself would win over the role's, being the last: a replica on another port, for
instance, would never be found ready, and its start would end after an hour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .._printable import printable
from .._secret_words import option_names_secret, secret_kind
from .warmup import RESERVED_VARIABLE

#: What the role gives vLLM itself, and the variable to set instead.
OWN: Mapping[str, str] = {
    "--host": "serving_listen_address",
    "--port": "serving_replica_port",
    "--uds": "serving_replica_port",
    "--model": "serving_model",
    "--served-model-name": "serving_name",
    "--dtype": "serving_dtype",
    "--max-model-len": "serving_max_model_len",
    "--max-num-seqs": "serving_max_num_seqs",
    "--tensor-parallel-size": "serving_cards",
    "-tp": "serving_cards",
    "--shutdown-timeout": "serving_drain_seconds",
    "--api-key": "serving_password among the secrets",
    "--ssl-keyfile": "serving_certificate_hosts",
    "--ssl-certfile": "serving_certificate_hosts",
    "--root-path": "serving_paths",
}
#: Variables of the role: without them its middleware and its folders are not found.
_VARIABLES = ("PYTHONPATH", "HOME", "PATH", "VLLM_CACHE_ROOT", "NOTIFY_SOCKET")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Numbers that the plan of the memory reads.
_COUNT = re.compile(r"VLLM_\w+_BUCKET_\w+")


def name_of(argument: str) -> str:
    """The option that an argument names, as vLLM reads it (``_`` is ``-``); empty for a value."""
    name = argument.partition("=")[0]
    return name.replace("_", "-") if name.startswith("-") and not _is_number(name) else ""


def _shortened(name: str) -> str:
    """What to see instead of the beginning of an option of the role's, as vLLM takes ``--por`` for ``--port``."""
    long = len(name) > 2 and name.startswith("--")
    return next((see for own, see in OWN.items() if long and own.startswith(name)), "")


def value_of(arguments: Sequence[str], option: str) -> str:
    """What an option is given; empty where it is not there."""
    found = ""
    for number, each in enumerate(arguments):
        if name_of(each) == option:
            found = each.partition("=")[2] if "=" in each else "".join(arguments[number + 1 : number + 2])
    return found


def arguments_problem(arguments: Sequence[str]) -> str:
    """Why these cannot be given; empty where they can."""
    before = ""
    for each in map(str, arguments):
        name = name_of(each)
        own = OWN.get(name) or _shortened(name)
        if own:
            return f"serving_arguments has {name}, which role serving gives vLLM itself: take it out, and see {own}."
        # A value of its own or behind the sign of equality.
        option, value = (name, each.partition("=")[2]) if name else (before, each)
        if value and (option_names_secret(option) or secret_kind(value)):
            where = f"the value of {printable(option, 60)}" if option else "a word"
            return (
                f"serving_arguments has {where} that looks like a secret, and every user of the host sees the "
                "arguments of a process: give it as a variable in serving_environment, or in a file."
            )
        if "\0" in each:
            return "serving_arguments has an argument with a byte 0, which no process can be given: correct it."
        before = name
    return ""


def environment_problem(environment: Mapping[str, object]) -> str:
    """Why these variables cannot be given; empty where they can."""
    for name, value in environment.items():
        if not _NAME.fullmatch(str(name)):
            return (
                f"serving_environment has the name {printable(name, 60)!r}: give letters, digits and underscores, "
                "not a digit first."
            )
        if name in _VARIABLES:
            return f"serving_environment has {name}, which role serving sets for its own programs: take it out."
        if value is None or isinstance(value, (list, dict)):
            return f"{name} in serving_environment has no text for its value: give one, in quotes."
        if "\0" in str(value):
            return (
                f"The value of {name} in serving_environment has a byte 0, which no process can be given: correct it."
            )
        if _COUNT.fullmatch(str(name)) and not (str(value).isascii() and str(value).isdigit()):
            return f"{name} in serving_environment is {printable(value, 60)!r}: give a whole number."
    share = environment.get(RESERVED_VARIABLE)
    if share is not None and not 0 <= _float(share) < 1:
        return (
            f"{RESERVED_VARIABLE} in serving_environment is {printable(share, 60)!r}: give a share from 0 to below 1, "
            "such as 0.1."
        )
    return ""


def _float(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return -1.0


def _is_number(text: str) -> bool:
    return _float(text.lstrip("-")) >= 0
