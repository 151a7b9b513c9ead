"""One command over terraform and ansible-playbook: plan, up, inventory, site, status, cost, down."""

__version__ = "0.1.0"
