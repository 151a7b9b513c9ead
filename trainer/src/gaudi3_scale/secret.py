"""The secret that the nodes of one job have in common, and proofs of having it. It is never sent.

Each proof is an HMAC (SHA-256) over what it is for: the job, the one who asks and what is said. A proof that was heard
once proves nothing in another job, at another start or of another rank.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from pathlib import Path
from typing import Any

from gaudi3_scale.errors import ConfigError, TrainerError

SECRET_FILE = "GAUDI3_JOB_SECRET_FILE"
"""Variable that names the file for the processes of a job; the secret itself stands in no environment."""
TEXT = re.compile(rb"[0-9a-f]{64}\n?")
RUN = "TORCHELASTIC_RUN_ID"
NONCE = 32
"""Bytes of a number that is used once, and of a proof."""


def read_secret(path: Path) -> bytes:
    """The secret in a file of 64 hexadecimal digits; ConfigError for another file, or one that everybody may read."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(100)
    except OSError as error:
        raise ConfigError(
            f"The job's secret {path} cannot be read ({error.strerror}): give the file that the other nodes have, or "
            "let the job's user read it."
        ) from None
    if mode & stat.S_IRWXO:
        raise ConfigError(
            f"The job's secret {path} has mode {stat.S_IMODE(mode):04o}, with which every user reaches it: make a new "
            "one, with mode 0600, on all nodes."
        )
    if not TEXT.fullmatch(text):
        raise ConfigError(
            f"The job's secret {path} is not one line of 64 digits from 0 to 9 and a to f: make it with `openssl rand "
            "-hex 32`, once for all nodes."
        )
    return bytes.fromhex(text.decode())


def own_secret() -> bytes | None:
    """The secret of the job that this process belongs to, where it has one."""
    path = os.environ.get(SECRET_FILE)
    return read_secret(Path(path)) if path else None


def proof(key: bytes, *parts: bytes) -> bytes:
    """The HMAC of these parts, in which no two lists of parts are alike."""
    made = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
    return made.digest()


def prove(group: Any, device: Any) -> None:
    """Have every rank of a group prove that it is of this job; TrainerError where one cannot. Collective.

    Each rank answers what all of them have just made up. A group whose ranks have no secret is let through.
    """
    import torch.distributed as dist

    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if size == 1:
        return
    secret = own_secret()
    asked = b"".join(_exchanged(os.urandom(NONCE), group, device))
    about = (b"rank", os.environ.get(RUN, "").encode(), str(size).encode(), asked)
    mine = bytes(NONCE) if secret is None else proof(secret, *about, str(rank).encode())
    for other, theirs in enumerate(_exchanged(mine, group, device)):
        expected = mine if secret is None else proof(secret, *about, str(other).encode())
        if not hmac.compare_digest(theirs, expected):
            raise TrainerError(
                f"Rank {other} of {size} did not prove to rank {rank} that it belongs to this job, and its part "
                "was not used: give all nodes the same secret, and let nobody else reach the cluster's network."
            )


def proven_group(**named: Any) -> Any:
    """A gloo group of all ranks, each of which has proved that it is of this job. Collective."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo", **named)
    prove(group, "cpu")
    return group


def _exchanged(mine: bytes, group: Any, device: Any) -> list[bytes]:
    """Everyone's bytes, by rank, in numbers that the collectives of every device carry."""
    import torch
    import torch.distributed as dist

    sent = torch.tensor(list(mine), dtype=torch.float32, device=device)
    received = [torch.empty_like(sent) for _ in range(dist.get_world_size(group))]
    dist.all_gather(received, sent, group=group)
    return [bytes(int(number) % 256 if 0 <= number < 256 else 0 for number in each.tolist()) for each in received]
