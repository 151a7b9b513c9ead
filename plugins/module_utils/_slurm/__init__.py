# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Slurm on Gaudi nodes: what its files say, which cards a job has, and when a node is drained."""
