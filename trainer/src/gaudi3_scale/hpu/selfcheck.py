"""Whether a Gaudi card computes what it should: asked before each job, as nothing else would notice.

Two public field reports of software 1.24.1 (kernels 6.1 and 6.8, cards in a translating IOMMU domain) have small
operations that were exact, while large gathers and matrix products with a long inner dimension gave other numbers in
every run, without an error; other machines of that kind fell to a kernel panic when a card was acquired. Both were
well with `iommu=pt`. Nobody has shown either on a Gaudi 3, whose driver keeps the page tables in the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import TrainerError

if TYPE_CHECKING:
    from gaudi3_scale.hpu.device import Device

INNER = 65536
"""Inner dimension of the matrix product, and rows of the gather: 8 MiB for each operand."""
OUTER = 32


_passed: set[str] = set()


def check_numbers_once(device: Device) -> None:
    """The same, unless this process's device has passed already."""
    if device.type not in _passed:
        check_numbers(device)
        _passed.add(device.type)


def check_numbers(device: Device) -> None:
    """Compare a matrix product and a gather, twice on the card, with the processor's; TrainerError at a difference."""
    if device.type != "hpu":
        return
    import torch

    # Small whole numbers: every sum is exact in float32, and the operands are in bfloat16, so the order of additions
    # and the width of a multiplication do not matter, and each difference is a fault.
    numbers = torch.arange(INNER * OUTER, dtype=torch.int64)
    left = ((numbers * 7919 // 64) % 5 - 2).to(torch.float32).reshape(OUTER, INNER)
    right = ((numbers * 104729 // 64) % 3 - 1).to(torch.float32).reshape(INNER, OUTER)
    places = torch.arange(INNER) * 40503 % INNER  # odd, so that each row comes once
    expected = {"matrix product": left @ right, "gather": right[places]}
    on_card = [tensor.to(device.torch_device()) for tensor in (left, right, places)]
    for attempt in ("first", "second"):
        for name, numbers_of_cpu in expected.items():
            found = _product(*on_card[:2]) if name == "matrix product" else _gather(*on_card[1:])
            device.step_boundary()
            wrong = int((found.cpu() != numbers_of_cpu).sum())
            if wrong:
                raise TrainerError(_sentence(name, attempt, wrong, numbers_of_cpu.numel()))

    torch.get_device_module(device.torch_device()).reset_peak_memory_stats()  # none of this is the job's


def _product(left: Any, right: Any) -> Any:
    return left @ right


def _gather(table: Any, places: Any) -> Any:
    return table.index_select(0, places)


def _sentence(name: str, attempt: str, wrong: int, count: int) -> str:
    shape = f"{OUTER} x {INNER} x {OUTER}" if name == "matrix product" else f"{INNER} rows"
    return (
        f"This process's Gaudi card computes wrong numbers: the {attempt} {name} of {shape} differs from "
        f"the processor's in {wrong} of {count} places; look at iommu_group/type of the card (it has to be identity) "
        "and at dmesg, and do not train on this card."
    )
