"""The launcher is torchrun's agent with a few methods of ours: they have to be there, in the form they are used."""

from __future__ import annotations

import inspect

from torch.distributed import run as torchrun
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.launcher import api

from gaudi3_scale import launch


def test_torchrun_is_as_the_launcher_takes_it_to_be() -> None:
    assert "LocalElasticAgent(" in inspect.getsource(api.launch_agent)
    assert list(inspect.signature(LocalElasticAgent._monitor_workers).parameters) == ["self", "worker_group"]
    assert list(inspect.signature(LocalElasticAgent._start_workers).parameters) == ["self", "worker_group"]
    assert "self._remaining_restarts > 0" in inspect.getsource(LocalElasticAgent._invoke_run)
    assert "next_rendezvous" in vars(dynamic_rendezvous.DynamicRendezvousHandler)
    handler = inspect.getsource(dynamic_rendezvous.DynamicRendezvousHandler)
    for name in ("_op_executor", "_state_holder", "_this_node", "def _stop_heartbeats", "def _get_deadline"):
        assert name in handler
    assert "redundancy_list" in inspect.getsource(dynamic_rendezvous._RendezvousState)
    shared = inspect.getsource(dynamic_rendezvous.DynamicRendezvousHandler.next_rendezvous)
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" in shared


def test_the_signals_are_torchruns_and_sigusr1() -> None:
    default = torchrun.get_args_parser().get_default("signals_to_handle")
    assert f"{default},SIGUSR1" == launch.SIGNALS
