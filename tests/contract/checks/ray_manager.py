"""Ray's HPUAcceleratorManager: what it sees of the cards."""

from __future__ import annotations

import os

import torch
from ray._private.accelerators.hpu import HPUAcceleratorManager as Manager


def main() -> None:
    """Each method of the manager."""
    assert Manager.get_resource_name() == "HPU"
    assert Manager.get_current_node_num_accelerators() == 8, Manager.get_current_node_num_accelerators()
    # Ray asks for the kind of card only where somebody uses one.
    assert not Manager.is_initialized()
    assert Manager.get_current_node_accelerator_type() is None, Manager.get_current_node_accelerator_type()
    torch.ones(3, device="hpu")
    kind = Manager.get_current_node_accelerator_type()
    assert kind == "Intel-GAUDI3", kind
    assert Manager.get_current_process_visible_accelerator_ids() is None
    assert Manager.validate_resource_request_quantity(2)[0]
    assert not Manager.validate_resource_request_quantity(0.5)[0]
    Manager.set_current_process_visible_accelerator_ids(["2", "5"])
    assert os.environ["HABANA_VISIBLE_MODULES"] == "2,5", os.environ["HABANA_VISIBLE_MODULES"]
    assert Manager.get_current_process_visible_accelerator_ids() == ["2", "5"]
    print("8 cards")


if __name__ == "__main__":
    main()
