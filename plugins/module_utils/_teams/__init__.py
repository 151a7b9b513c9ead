# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Teams of a cluster: their users and quotas from one file, for Slurm, Kueue and sudo."""
