"""Streams and events: their identities, and the interface of Habana's plugin (HabanaAI/gaudi-pytorch-bridge 1.19)."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.usefixtures("clean")


@pytest.mark.parametrize("count", [2, 5])
def test_each_recorded_event_is_another(count: int) -> None:
    events = [torch.Event("hpu") for _ in range(count)] + [torch.hpu.Event() for _ in range(count)]
    for event in events:
        event.record()
    first = [event.event_id for event in events]
    assert len(set(first)) == 2 * count
    for event in reversed(events):
        event.record(torch.hpu.Stream())
    assert [event.event_id for event in events] == first, "an event that is recorded again stays the same"


@pytest.mark.parametrize("place", ["current", "default", "inside"])
def test_every_stream_is_of_habanas_class(place: str) -> None:
    chosen = torch.hpu.Stream()
    with torch.hpu.stream(chosen if place == "inside" else None):
        stream = torch.hpu.default_stream() if place == "default" else torch.hpu.current_stream()
        assert type(stream) is torch.hpu.Stream
        assert stream.id() == stream.stream_id == (chosen.id() if place == "inside" else 0)
        assert torch.hpu.get_stream_info(stream) == (torch.device("hpu:0"), stream.id())
        assert stream.device_index == torch.device("hpu:0") == stream.device
        event = torch.hpu.Event()
        assert stream.record_event(event) is event and event.query()
        assert {stream: 1}[torch.hpu.default_stream() if place != "inside" else chosen] == 1


def test_only_streams_of_habanas_class_are_equal() -> None:
    generic = torch.Stream("hpu")
    same = torch.hpu.Stream(
        stream_id=generic.stream_id, device_index=generic.device_index, device_type=generic.device_type
    )
    again = torch.hpu.Stream(stream_id=same.id(), device_index=same.device_index, device_type=same.device_type)
    assert same == again != torch.hpu.Stream()
    assert not (same == generic or generic == same or same == same.id())
