"""Queues of Kueue; deploy/tests/test_teams.py has Kueue's own definitions of them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._teams import kueue
from ansible_collections.gaudi3.scale.plugins.module_utils._teams.declared import Quota, TeamEntry

TEAMS = (
    TeamEntry("vision", ("anna",), Quota(16, 4), 10, "vision"),
    TeamEntry("speech", ("ben",), Quota(8), 0, "ml-speech"),
)


def test_every_team_has_its_queues() -> None:
    found = kueue.manifests(TEAMS, others={"memory": "800Gi"}, labels={"gaudi": "gaudi3"})
    assert [(each["kind"], each["metadata"]["name"]) for each in found] == [
        ("ResourceFlavor", "gaudi3"),
        ("ClusterQueue", "team-vision"),
        ("LocalQueue", "gaudi"),
        ("ClusterQueue", "team-speech"),
        ("LocalQueue", "gaudi"),
    ]
    assert found[3]["spec"] == {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ml-speech"}},
        "resourceGroups": [
            {
                "coveredResources": ["habana.ai/gaudi", "memory"],
                "flavors": [
                    {
                        "name": "gaudi3",
                        "resources": [
                            {"name": "habana.ai/gaudi", "nominalQuota": "8"},
                            {"name": "memory", "nominalQuota": "800Gi"},
                        ],
                    }
                ],
            }
        ],
    }
    assert found[4]["metadata"]["namespace"] == "ml-speech" and found[4]["spec"] == {"clusterQueue": "team-speech"}
    (said,) = kueue.notes([TEAMS[1]._replace(nodes=("gaudi-1",), partition="night")])
    assert said == "Team speech: a queue of Kueue has no nodes and no partition; the file's is left out."
    assert kueue.notes(TEAMS) == [
        "Team vision: a queue of Kueue has no jobs and no priority; the file's is left out.",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"resource": "a b"}, "The resource 'a b' is none of Kubernetes': give one as habana.ai/gaudi or memory."),
        ({"others": {"memory": "12 GB"}}, "The amount '12 GB' of memory is none of Kubernetes': give one as 128 or "),
        (
            {"others": {"habana.ai/gaudi": "99"}},
            "The resource habana.ai/gaudi is the cards', whose amount is each team's quota: leave it out of --other.",
        ),
        (
            {"resource": "gaudi.intel.com/card", "others": {"gaudi.intel.com/card": "1"}},
            "The resource gaudi.intel.com/card is the cards', ",
        ),
        ({"labels": {"gaudi": "a/b"}}, "The label 'gaudi=a/b' is none of a node: give one as gaudi=gaudi3."),
        ({"flavor": "A"}, "The flavor 'A' is not a name: take lower-case letters, digits and '-'."),
    ],
)
def test_what_kubernetes_would_refuse_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        kueue.manifests(TEAMS, **given)
    assert str(refused.value).startswith(said)


def test_a_queue_needs_a_number_of_cards() -> None:
    with pytest.raises(Refusal, match="Team a has no quota of cards, which Kueue needs: give quota"):
        kueue.manifests([TeamEntry("a", ("anna",), Quota(), 0, "a")])
