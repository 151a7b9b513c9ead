"""What programs do with tensors of the device, and the faults that were met while it was built."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.usefixtures("clean")


def test_conjugated_tensors_are_copied_and_multiplied() -> None:
    values = torch.randn(3, 3, dtype=torch.complex64)
    on_card = values.to("hpu").conj()
    assert on_card.is_conj()
    assert torch.equal(on_card.cpu(), values.conj())
    assert torch.equal((on_card @ on_card).cpu(), values.conj() @ values.conj())
    assert torch.equal(on_card.imag.cpu(), values.conj().imag)
    target = torch.empty(3, 3, dtype=torch.complex64, device="hpu")
    assert torch.equal(target.copy_(on_card).cpu(), values.conj().resolve_conj())


def test_set_takes_another_tensors_memory() -> None:
    source = torch.arange(6.0, device="hpu")
    target = torch.empty(0, device="hpu")
    target.set_(source)
    target[0] = 9
    assert source[0] == 9
    target.set_(source.untyped_storage(), 2, (2,), (1,))
    assert target.tolist() == [2, 3]
    target.set_(source.untyped_storage())
    assert target.shape == (6,)
    target.set_()
    assert target.numel() == 0
    with pytest.raises(RuntimeError, match="storage"):
        target.set_(torch.zeros(2))
    parameter = nn.Parameter(torch.zeros(3, device="hpu"))
    parameter.data = source[:3]
    assert parameter.data_ptr() == source.data_ptr()


def test_outputs_are_resized_and_views_stay_views() -> None:
    values = torch.arange(6.0, device="hpu").view(2, 3)
    out = torch.empty(0, device="hpu")
    assert torch.add(values, 1, out=out) is out
    assert out.shape == (2, 3)
    for view in (
        values.T,
        values[1],
        values.unfold(1, 2, 1),
        values.view(torch.int32),
        *values.unbind(),
        *values.split(1),
    ):
        assert view.untyped_storage().data_ptr() == values.untyped_storage().data_ptr()
    values.t_().mul_(2)
    assert values.tolist() == [[0, 6], [2, 8], [4, 10]]
    values.resize_(4, 4)
    assert values.shape == (4, 4) and values.device.type == "hpu"


def test_indexing() -> None:
    values = torch.arange(6.0, device="hpu")
    assert values[torch.tensor([0, 5])].tolist() == [0, 5], "indices may be on the CPU"
    assert values[values > 3].tolist() == [4, 5]
    values[torch.tensor([1, 2], device="hpu")] = 7
    assert values.tolist() == [0, 7, 7, 3, 4, 5]
    assert values.nonzero().device.type == "hpu"
    counts = torch.histc(torch.tensor([0, 2, 2], dtype=torch.int32, device="hpu"), bins=3, min=0, max=2)
    assert (counts.tolist(), counts.dtype) == ([1, 0, 2], torch.int32)


def test_devices_do_not_mix() -> None:
    values = torch.ones(2, 2, device="hpu")
    operations = (
        lambda: values + torch.ones(2, 2),
        lambda: values @ torch.ones(2, 2),
        lambda: nn.functional.linear(values, torch.ones(2, 2)),
        lambda: torch.cat([values, torch.ones(2, 2)]),
    )
    for operation in operations:
        with pytest.raises(RuntimeError, match="same device"):
            operation()
    assert (values * torch.tensor(2.0)).tolist() == [[2, 2], [2, 2]], "numbers may be on the CPU"


def test_random_numbers() -> None:
    torch.manual_seed(1)
    first = torch.rand(4, device="hpu")
    torch.manual_seed(1)
    assert torch.equal(torch.rand(4, device="hpu"), first)
    state = torch.hpu.get_rng_state()
    assert state.device.type == "cpu"
    second = torch.rand(4, device="hpu")
    torch.rand(4)  # the CPU draws from its own
    torch.hpu.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="hpu"), second)
    generator = torch.Generator("hpu").manual_seed(9)
    drawn = torch.randperm(16, generator=generator, device="hpu")
    assert torch.equal(drawn, torch.randperm(16, generator=generator.manual_seed(9), device="hpu"))
    cpu = torch.get_rng_state()
    torch.native_dropout(torch.ones(8, device="hpu"), 0.5, True)  # takes no generator
    assert torch.equal(torch.get_rng_state(), cpu)


def test_autocast_computes_in_bfloat16() -> None:
    linear = nn.Linear(8, 8).to("hpu")
    values = torch.randn(2, 8, device="hpu")
    assert linear(values).dtype == torch.float32
    with torch.autocast("hpu", dtype=torch.bfloat16):
        assert linear(values).dtype == torch.bfloat16
        assert torch.hpu.is_autocast_hpu_enabled()
        assert torch.logsumexp(linear(values), 0).dtype == torch.float32
        with torch.autocast("hpu", enabled=False):
            assert linear(values).dtype == torch.float32
        loss = nn.functional.mse_loss(linear(values), values)
    loss.backward()
    assert linear.weight.grad is not None
    assert linear.weight.grad.dtype == torch.float32


def test_save_and_load(tmp_path: Path) -> None:
    weights = nn.Linear(3, 3).to("hpu").state_dict()
    torch.save(weights, tmp_path / "weights.pt")
    for where, device in ((None, "hpu:0"), ("cpu", "cpu"), ("hpu", "hpu:0"), ("hpu:0", "hpu:0")):
        loaded = torch.load(tmp_path / "weights.pt", map_location=where)["weight"]
        assert str(loaded.device) == device
        assert torch.equal(loaded.cpu(), weights["weight"].cpu())


def test_data_loader_pins_memory() -> None:
    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, pin_memory=True, num_workers=1)
    batches = [batch for (batch,) in loader]
    assert [batch.is_pinned() for batch in batches] == [True, True]
    assert [batch.to("hpu", non_blocking=True).tolist() for batch in batches] == [[0, 1], [2, 3]]
    assert not torch.ones(2).is_pinned()


def test_profiler_lists_operations_without_times_of_the_card() -> None:
    from torch.profiler import ProfilerActivity, profile

    linear = nn.Linear(4, 4).to("hpu")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.HPU], profile_memory=True) as recorded:
        linear(torch.ones(2, 4, device="hpu")).sum().backward()
    events = {event.key: event for event in recorded.key_averages()}
    assert events["aten::addmm"].count == 1
    assert events["aten::addmm"].cpu_memory_usage == 0, "its result is the card's"
    assert all(event.device_time_total == 0 for event in events.values()), "no time is a card's"


def test_compiled_without_code_generation() -> None:
    linear = nn.Linear(4, 4).to("hpu")
    values = torch.ones(2, 4, device="hpu")
    for backend in ("eager", "aot_eager"):
        assert torch.equal(torch.compile(linear, backend=backend)(values), linear(values))
    torch._dynamo.reset()


def test_streams_and_events_are_named_and_always_done() -> None:
    stream = torch.hpu.Stream()
    with torch.hpu.stream(stream):
        assert torch.hpu.current_stream() == stream
        event = torch.hpu.Event()
        event.record()
    assert torch.hpu.current_stream() == torch.hpu.default_stream() != stream
    assert event.query()
    stream.wait_event(event)
    torch.ones(1, device="hpu").record_stream(stream)
    torch.hpu.synchronize()


def test_what_torch_asks_of_an_accelerator() -> None:
    assert str(torch.accelerator.current_accelerator()) == "hpu"
    assert torch.accelerator.device_count() == torch.hpu.device_count() == 8
    torch.accelerator.set_device_index(0)
    assert torch.empty(1, device="hpu").device.index == 0 == torch.hpu.current_device()
    torch.hpu.set_device("hpu:0")
    with torch.device("hpu"):
        assert nn.Linear(2, 2).weight.device.type == "hpu"
    with torch._subclasses.FakeTensorMode():
        assert (torch.ones(2, device="hpu") + 1).device.type == "hpu"
    scaler = torch.amp.GradScaler("hpu", init_scale=4.0)
    weight = nn.Parameter(torch.ones(2, device="hpu"))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler.scale((weight * 2).sum()).backward()
    scaler.step(optimizer)
    assert weight.tolist() == pytest.approx([0.8, 0.8])
    gradient = torch.func.vmap(torch.func.grad(lambda x: (x**2).sum()))(torch.ones(2, 3, device="hpu"))
    assert gradient.tolist() == [[2] * 3] * 2


def test_long_lists_of_tensors_keep_their_order() -> None:
    parameters = [nn.Parameter(torch.full((2,), float(index), device="hpu")) for index in range(50)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD(parameters, lr=1.0, fused=True).step()
    assert [parameter[0].item() for parameter in parameters] == [index - 1 for index in range(50)]
