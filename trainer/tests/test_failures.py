"""Which errors mean that another process is gone, which that this one's card failed or has too little memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from gaudi3_scale.config import Config, load
from gaudi3_scale.distributed.process_group import Topology
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.hpu.device import tells_out_of_memory
from gaudi3_scale.interruption import Notices
from gaudi3_scale.interruption.leaving import Interruption
from gaudi3_scale.interruption.notice import Notice
from gaudi3_scale.job.failures import explain, is_lost_contact
from gaudi3_scale.job.fit import fit
from gaudi3_scale.status import Progress


def progress(world: int) -> Progress:
    """A job that has made seven steps."""
    return Progress(10, world, "hpu", 64, 8, step=7)


def named(module: str, name: str, base: type[Exception], text: str) -> Exception:
    """An error of a library that need not be installed."""
    made: Exception = type(name, (base,), {"__module__": module})(text)
    return made


PEER = {
    "gloo closed": RuntimeError(
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.7]:35210. This "
        "may indicate a remote rank failed."
    ),
    "gloo waited": RuntimeError(
        "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 120000ms for recv"
    ),
    "gloo pair": RuntimeError("Application timeout caused pair closure"),
    "gloo without its file": RuntimeError("Connection reset by peer"),
    "the store": dist.DistNetworkError("failed to recv, got 0 bytes"),
    "nccl": dist.DistBackendError("NCCL communicator was aborted on rank 1."),
    "hccl collective": RuntimeError("Collective call returned error"),
    "hccl point to point": RuntimeError("P2P call returned error"),
    "hccl group": RuntimeError("hcclGroupEnd call returned error"),
}
CARD = {
    "busy": RuntimeError("synStatus=20 [Device already acquired] Device acquire failed."),
    "none": RuntimeError("Device acquire failed. No devices found."),
    "compile": RuntimeError("synStatus 26 [Generic failure] Graph compile failed."),
    "launch": RuntimeError("synLaunch failed. synStatus=26 [Generic failure]"),
}
NEITHER = {
    "endpoint": named(
        "botocore.exceptions", "EndpointConnectionError", Exception, "Could not connect to the endpoint URL: https://s3"
    ),
    "closed": named(
        "botocore.exceptions",
        "ConnectionClosedError",
        Exception,
        "Connection was closed before we received a valid response from endpoint URL",
    ),
    "pool": named("urllib3.exceptions", "MaxRetryError", Exception, "HTTPSConnectionPool: Connection reset by peer"),
    "socket": ConnectionResetError(104, "Connection reset by peer"),
    "upload": TrainerError("The upload of step 4 failed: Connection closed by peer"),
    "runtime of another": named("s3transfer.exceptions", "FatalError", RuntimeError, "Connection closed by peer"),
    "shape": RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    "word": ValueError("gloo is no such device"),
}


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in PEER.items()])
def test_a_lost_peer_is_a_sentence(error: Exception) -> None:
    assert is_lost_contact(error)
    said = str(explain(error, Topology(1, 1, 2, 2), progress(2), Config()))
    assert said.startswith("Rank 1 lost contact with another process after step 7 (") and "/third_party/" not in said
    assert explain(error, Topology(), progress(1), Config()) is error


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in CARD.items()])
def test_a_card_that_fails_is_a_sentence_and_no_lost_peer(error: Exception, world: int) -> None:
    assert not is_lost_contact(error)
    said = explain(error, Topology(world - 1, world - 1, world, world), progress(world), Config())
    assert isinstance(said, TrainerError)
    assert str(said).startswith(f"The card of rank {world - 1} failed after step 7 ({str(error).rstrip('.')}): ")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 32.00 GiB. GPU 0 has a total capacity of 79.18 GiB."
            ),
            "CUDA out of memory",
        ),
        (
            RuntimeError("[Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::4194304 (4)MB"),
            "FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::4194304 (4)MB",
        ),
    ],
    ids=["CUDA", "Gaudi"],
)
def test_memory_that_does_not_suffice_is_a_sentence(error: Exception, words: str) -> None:
    rest = "or memory.activation_checkpointing to full; started again, the job resumes from its newest checkpoint."
    for size, smaller in ((8, "to auto or below 8"), (1, "to a smaller number"), ("auto", "to a smaller number")):
        said = explain(error, Topology(), progress(1), load(None, [f"train.micro_batch_size={size}"]))
        assert isinstance(said, TrainerError)
        assert str(said) == (
            f"Rank 0 ran out of memory after step 7 ({words}): set train.micro_batch_size {smaller}, {rest}"
        )
        assert tells_out_of_memory(str(said))  # as a search of settings looks for it


@pytest.mark.parametrize("error", [pytest.param(error, id=name) for name, error in NEITHER.items()])
def test_what_is_neither_stays_what_it_is(error: Exception) -> None:
    assert not is_lost_contact(error)
    assert explain(error, Topology(1, 1, 2, 2), progress(2), Config()) is error


@pytest.mark.parametrize(
    ("error", "code"), [(error, 75) for error in PEER.values()] + [(error, 1) for error in CARD.values()],
    ids=[*PEER, *CARD],
)  # fmt: skip
def test_who_is_late_while_all_leave_is_interrupted_and_has_not_failed(
    error: Exception, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have agreed to leave, and another was quicker."""
    small = {"layers": 1, "hidden_size": 16, "intermediate_size": 32, "heads": 2, "kv_heads": 2, "sequence_length": 16}
    config = Config.model_validate(
        {
            "device": "cpu",
            "output_dir": tmp_path,
            "model": small,
            "train": {"max_steps": 2},
            "data": {"validation_samples": 2},
        }
    )
    notices = Notices(config.interruption)
    notices.tell(Notice("SIGTERM", "SIGTERM was received"))

    def leave(self: Interruption, words: str) -> None:
        raise error

    monkeypatch.setattr(Interruption, "_leave", leave)
    with pytest.raises(TrainerError) as raised:
        fit(config, notices)
    assert raised.value.exit_code == code
