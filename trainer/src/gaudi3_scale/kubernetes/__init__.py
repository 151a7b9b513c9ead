"""A job as manifests for Kubernetes: `gaudi3-train kubernetes`.

`cluster` has what the cluster is, `job` what of the job a pod can carry, `checks` what no schema sees, and `manifests`
writes it down. Nothing here talks to a cluster.
"""
