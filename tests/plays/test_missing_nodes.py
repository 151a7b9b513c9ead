"""While a job waits for nodes to meet, the play says which of them are missing."""

from __future__ import annotations

from .cluster import Cluster
from .test_jobs import nodes, train

#: Connections in the head's kernel: its own and that of 10.0.0.2 at port 29400.
CONNECTIONS = [
    "   0: 0100000A:72D8 0100000A:C001 01 00000000:00000000 00:00000000 00000000     0        0 1",
    "   1: 0100000A:72D8 0200000A:C002 01 00000000:00000000 00:00000000 00000000     0        0 2",
]


def test_the_missing_nodes_are_named(cluster: Cluster) -> None:
    nodes(cluster, 4)
    cluster["gaudi-1"].give(sockets=CONNECTIONS)
    cluster["gaudi-4"].give(addresses={"eth1": ["10.9.0.4"]})
    cluster.variables["gaudi-4"]["gaudi_cluster_address"] = "10.9.0.4"
    run = train(cluster, trainer_timeout=3, trainer_poll_interval=1)
    assert "gaudi-1: waits for gaudi-3, gaudi-4" in run.output, run.messages()
    assert run.messages()[0] == (
        "Job demo still runs and waits for gaudi-3, gaudi-4 after 3 seconds of waiting, and was left running: run the "
        "task again to wait on, or raise 'timeout'."
    )
