"""A job as a batch script for Slurm: `gaudi3-train slurm`.

`options` has what the cluster is, `slurm_job` what of the job a batch script carries, `checks` what Slurm would notice
too late, and `script` writes it down. Nothing here talks to a cluster.
"""
