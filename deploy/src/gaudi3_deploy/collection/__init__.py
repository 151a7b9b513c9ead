"""Code of the collection whose playbooks this command runs: links in a checkout, files in the installed package."""
