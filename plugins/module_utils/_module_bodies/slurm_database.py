# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The database of slurmdbd and its user, by the client of MariaDB, which reads the password where nobody else can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusal import Refusal
from .._slurm import site

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "password": {"type": "str", "required": True, "no_log": True},
    "client_executable": {"type": "str", "default": "mariadb"},
}


def run(module: AnsibleModule) -> dict[str, Any]:
    """Look whether the user can use its database, and make both where not."""
    password = module.params["password"]
    try:
        site.check_password(password)
    except Refusal as refusal:
        module.fail_json(msg=str(refusal))
    client = module.get_bin_path(module.params["client_executable"])
    if client and _serves(module, client, password):
        return {"changed": False, "database": site.DATABASE}
    if module.check_mode:
        return {"changed": True, "database": site.DATABASE}
    if not client:
        module.fail_json(msg=f"{module.params['client_executable']} is not on this host: install MariaDB's client.")
    code, output, errors = module.run_command([client, "--batch"], data=site.statements(password))
    if code != 0:
        module.fail_json(msg=f"MariaDB did not make the database of slurmdbd: {(errors or output).strip()}")
    return {"changed": True, "database": site.DATABASE}


def _serves(module: AnsibleModule, client: str, password: str) -> bool:
    """Whether the user may make tables, and so has what `statements` gives."""
    command = [client, "--defaults-file=/dev/stdin", "--batch", "--skip-column-names", "--execute=SHOW GRANTS"]
    code, output, _errors = module.run_command(command, data=site.client_options(password))
    return code == 0 and f"ALL PRIVILEGES ON `{site.DATABASE}`" in output
