"""Every generator a rank may draw from: set, remembered and restored together."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.hpu.device import Device


def seed_all(seed: int) -> None:
    """Seed Python's, NumPy's and torch's generators (torch's devices included)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def capture(device: Device) -> dict[str, Any]:
    """The state of all of them, of types that `torch.load(weights_only=True)` accepts."""
    version, keys, gauss = random.getstate()
    numpy: Any = np.random.get_state(legacy=False)
    return {
        "torch": torch.get_rng_state(),
        "device": device.random_state(),
        "python": (version, torch.tensor(keys), gauss),
        "numpy": {
            "key": torch.from_numpy(numpy["state"]["key"].astype(np.int64)),
            "pos": int(numpy["state"]["pos"]),
            "has_gauss": int(numpy["has_gauss"]),
            "gauss": float(numpy["gauss"]),
        },
    }


def restore(state: dict[str, Any], device: Device) -> None:
    """Continue where `capture` was; TrainerError for what `capture` did not give."""
    try:
        _restore(state, device)
    except (LookupError, AttributeError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = (str(error).strip() or "no message").splitlines()[0][:200]
        raise TrainerError(
            f"The random state in the checkpoint cannot be restored ({type(error).__name__}: {reason}): somebody may "
            "have made that checkpoint to do harm; delete it to go on from the one before."
        ) from None


def _restore(state: dict[str, Any], device: Device) -> None:
    torch.set_rng_state(state["torch"])
    device.set_random_state(state["device"])
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys.tolist()), gauss))
    numpy = state["numpy"]
    key = numpy["key"].numpy().astype(np.uint32)
    np.random.set_state(("MT19937", key, numpy["pos"], numpy["has_gauss"], numpy["gauss"]))
