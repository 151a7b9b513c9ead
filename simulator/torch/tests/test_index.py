"""A process has one card, and its index is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.usefixtures("clean")
ACTIVE = "habana active device: {} != 0"


@pytest.mark.parametrize("index", [1, 3, 7, 9])
@pytest.mark.parametrize(
    "attempt",
    [
        lambda device: torch.empty(1, device=device),
        lambda device: torch.zeros(2, 2).to(device),
        lambda device: torch.ones(1, device="hpu").to(device),
        lambda device: torch.empty_strided((2, 2), (1, 2), device=device),
        lambda device: torch.hpu.device(device).__enter__(),
        lambda device: torch.accelerator.set_device_index(device.index),
        lambda device: torch.hpu.Stream(device),
        lambda device: torch.hpu.current_stream(device),
        lambda device: torch.hpu.default_stream(device),
        lambda device: torch.Stream(device),
        lambda device: torch.Generator(device),
    ],
)
def test_another_index_fails(attempt: Callable[[torch.device], Any], index: int) -> None:
    with pytest.raises(RuntimeError, match=ACTIVE.format(index)):
        attempt(torch.device("hpu", index))


@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        (lambda: torch.hpu.get_rng_state(1), RuntimeError),
        (lambda: torch.hpu.get_rng_state("hpu:2"), RuntimeError),
        (lambda: torch.hpu.set_rng_state(torch.hpu.get_rng_state(), 3), RuntimeError),
        (lambda: torch.hpu.set_rng_state_all([torch.hpu.get_rng_state()] * 2), RuntimeError),
        (lambda: torch.hpu.memory_allocated(1), AssertionError),
        (lambda: torch.hpu.memory_stats("hpu:5"), AssertionError),
        (lambda: torch.hpu.reset_peak_memory_stats(2), AssertionError),
        (lambda: torch.hpu.get_device_name(11), AssertionError),
        (lambda: torch.hpu.get_device_properties(-1), AssertionError),
    ],
)
def test_another_index_has_neither_random_state_nor_memory(attempt: Callable[[], Any], error: type) -> None:
    with pytest.raises(error):
        attempt()


def test_index_zero_works_by_every_name() -> None:
    for device in (0, "hpu", "hpu:0", torch.device("hpu"), torch.device("hpu", 0)):
        torch.hpu.set_device(device)
        assert torch.empty(1, device=device if device != 0 else "hpu:0").device == torch.device("hpu", 0)
        assert torch.hpu.get_rng_state(device).device.type == "cpu"
        assert torch.hpu.memory_allocated(device) == torch.hpu.memory_allocated()
        with torch.hpu.device(device):
            assert torch.hpu.current_device() == 0 == torch.accelerator.current_device_index()
    assert len(torch.hpu.get_rng_state_all()) == 1
    assert torch.hpu.device_count() == 8, "those to choose from"


def test_seeds_reach_the_card() -> None:
    seed = torch.seed()
    assert torch.hpu.initial_seed() == seed == torch.initial_seed()
    first = torch.rand(4, device="hpu")
    torch.manual_seed(seed)
    assert torch.equal(torch.rand(4, device="hpu"), first)
    assert torch.hpu.random.default_generators[0].initial_seed() == seed
    assert len(torch.hpu.random.default_generators) == 1
    assert isinstance(torch.hpu.manual_seed(3), torch.Generator)
    assert isinstance(torch.hpu.seed(), int)
    torch.hpu.seed_all()


def test_streams_record_events() -> None:
    stream, other = torch.hpu.Stream(), torch.hpu.Stream()
    event = torch.hpu.Event()
    assert stream.record_event(event) is event
    assert isinstance(stream.record_event(), torch.Event)
    other.wait_event(event)
    other.wait_stream(stream)
    event.wait(other)
    event.synchronize()
    assert stream.query() and event.query()


def test_names_that_habanas_module_has() -> None:
    assert torch.hpu.get_arch_list() == ["GAUDI3"]
    assert torch.hpu.get_gencode_flags() == ""
    assert torch.hpu._get_device_index("hpu:0") == 0 == torch.hpu._get_device_index(None, optional=True)
    assert torch.hpu._get_device_index("cpu", allow_cpu=True) == -1
    for wrong in (None, "hpu"):
        with pytest.raises(ValueError, match="index"):
            torch.hpu._get_device_index(wrong)
    with pytest.raises(ValueError, match="hpu"):
        torch.hpu._get_device_index("cuda:0")
    assert torch.hpu.can_device_access_peer(0, 1) is True
    for pair in ((0, 0), (0, 8), (-1, 1)):
        with pytest.raises(AssertionError):
            torch.hpu.can_device_access_peer(*pair)
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert torch.hpu.memory_cached() == torch.hpu.memory_reserved()
    with pytest.warns(FutureWarning, match="max_memory_reserved"):
        assert torch.hpu.max_memory_cached() == torch.hpu.max_memory_reserved()


@pytest.mark.parametrize(
    ("visible", "index", "module"), [("", 0, "0"), ("", 5, "5"), ("2,3", 1, "3"), ("6,4,5", 2, "5")]
)
def test_set_device_chooses_a_module_and_the_index_stays(
    run: Callable[..., Any], visible: str, index: int, module: str
) -> None:
    result = run(
        f"import os, torch; torch.hpu.set_device({index}); torch.ones(1, device='hpu');"
        "print(os.environ['HLS_MODULE_ID'], torch.hpu.current_device())",
        **({"HABANA_VISIBLE_MODULES": visible} if visible else {}),
    )
    assert result.stdout.split() == [module, "0"], result.stderr


def test_set_device_refuses_a_place_that_is_not_there() -> None:
    with pytest.raises(AssertionError, match="Trying to open device with idx=11"):
        torch.hpu.set_device(11)
