"""What to do about refusals of the cloud that every user of scarce machines meets sooner or later.

The codes are those of "Error codes for the Amazon EC2 API"; `over_quota` is that of IBM Cloud's VPC API.
"""

from __future__ import annotations

ADVICE = {
    "InsufficientInstanceCapacity": "AWS has no such machine free there now: try again later, reserve capacity, or "
    "take another zone with `--var availability_zone=...`, after `gaudi3-deploy down` where a node was made already; "
    "what was made stays, and the next `up` goes on from it",
    "VcpuLimitExceeded": "your account may not have this many of them: ask AWS for a higher quota; what was made stays "
    "and the next `up` goes on from it",
    "MaxSpotInstanceCountExceeded": "your account may not have this many spot machines: ask AWS for a higher quota, or "
    "buy some of them on demand (on_demand_nodes)",
    "SpotMaxPriceTooLow": "the market asks more than spot_max_price: raise it, or leave it out",
    "InvalidPlacementGroup.Duplicate": "a placement group that does not carry this cluster's tags has its name in the "
    "region: take another name",
    "over_quota": "your account has no quota left for it in the region: ask IBM for a higher one, of vCPU, GPUs and "
    "instance storage; what was made stays, and the next `up` goes on from it",
    "BucketNotEmpty": "the bucket was filled after it was looked into: run `gaudi3-deploy down` again, which keeps it, "
    "or with --checkpoints, which deletes what is in it",
}


def advice(said: str) -> str:
    """What to do about what the cloud said, as a clause to be added; empty where nothing is known."""
    return next((f"; {clause}" for code, clause in ADVICE.items() if code in said), "")
