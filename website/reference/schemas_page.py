"""The page of the JSON schemas: which there are, and how an editor finds them."""

from __future__ import annotations

from website.reference.schemas import every
from website.reference.text import document, table

TITLE = "JSON schemas for editors"
#: The scheme of links to files of the site that are no pages; the site's settings have it too.
FILE = "site:"
FOR = {
    "trainer-config": "a job file of `gaudi3-train fit --config`",
    "variables": "files in `group_vars/` and `host_vars/`, files for `-e @FILE`, jobs of `gaudi3-deploy run`",
    "inventory": "an inventory in YAML, such as `hosts.yml`; it needs `variables.schema.json` beside it",
    "cost-inputs": "the inputs of `gaudi3-train cost`",
    "teams": "the teams of `gaudi3-deploy teams`",
}


def page() -> str:
    """The page."""
    rows = [(f"[{name}.schema.json]({FILE}../schemas/{name}.schema.json)", FOR[name]) for name in every()]
    return document(
        f"# {TITLE}",
        "With a JSON schema, an editor completes the keys of a file, shows what each means, and marks a misspelt key "
        "or a wrong type while you type. This page is for whoever writes inventories, jobs, cost inputs or teams. The "
        "schemas are made from what reads these files.",
        table(("schema", "for"), rows),
        "## In VS Code",
        "Install the extension *YAML* of Red Hat. It reads a comment at the head of a file, here a path relative to "
        "the file, so that it works without a network:",
        "```yaml\n# yaml-language-server: $schema=.schemas/inventory.schema.json\n```",
        "An inventory from `gaudi3.scale.new_inventory` has these lines and the schemas in `.schemas/`, a folder that "
        "Ansible ignores. For a job file of the trainer, have both written:",
        "```sh\ngaudi3-train config --schema job.schema.json > job.yml\n```",
        "Other editors with the same language server (Neovim, Emacs, Helix, JetBrains by plugin) read the same line. "
        "In inventories every value may be a template of Ansible's, `{{ ... }}`. For encrypted values add `!vault` to "
        "the setting `yaml.customTags`.",
        "A schema checks one key at a time. What several keys have to do with each other is checked by the preflight "
        "and by `gaudi3-train`.",
        "## Next",
        "- [Variables of the inventory](variables.md)\n- [Configuration of a job](configuration.md)",
    )
