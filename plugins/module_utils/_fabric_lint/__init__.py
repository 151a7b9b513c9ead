# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Holds the configuration of switches, and the cables between them and the hosts, against what the site wants."""
