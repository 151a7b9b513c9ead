"""The functions of libhlml that programs in Go and Rust call: `hlml_names.py plugin|names`.

`names`: every function that the sources of gohlml or of the exporter's binding declare is in the library. `plugin`: the
calls of the Kubernetes device plugin, in its order, through the library itself. The programs are compiled, so their
calls are made here.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path

LIBRARY = "/usr/lib/habanalabs/libhlml.so"
STRING = 64
TIMEOUT = 10  # HLML_ERROR_TIMEOUT


def names(repository: Path) -> set[str]:
    """Functions of libhlml that the sources call."""
    found: set[str] = set()
    for path in repository.rglob("*"):
        if path.suffix == ".go":
            found |= set(re.findall(r"\bC\.(hlml_[a-z0-9_]+)\(", path.read_text()))
        elif path.suffix == ".rs" and path.name != "bindings.rs":  # declares what nobody calls too
            found |= set(re.findall(r"\b(hlml_(?:init|shutdown|get|device|nic|event)[a-z0-9_]*)\(", path.read_text()))
    return found


def plugin(library: ctypes.CDLL) -> None:
    """Start, list the devices, watch for critical errors, stop."""

    def ok(code: int, call: str) -> None:
        assert code == 0, f"{call} returns {code}"

    ok(library.hlml_init(), "hlml_init")
    count = ctypes.c_uint()
    ok(library.hlml_device_get_count(ctypes.byref(count)), "hlml_device_get_count")
    assert count.value == 8, count.value
    serials = set()
    events = ctypes.c_void_p()
    ok(library.hlml_event_set_create(ctypes.byref(events)), "hlml_event_set_create")
    for index in range(count.value):
        device = ctypes.c_void_p()
        ok(library.hlml_device_get_handle_by_index(index, ctypes.byref(device)), "hlml_device_get_handle_by_index")
        for name in ("hlml_device_get_serial", "hlml_device_get_uuid", "hlml_device_get_name"):
            text = ctypes.create_string_buffer(STRING)
            ok(getattr(library, name)(device, text, STRING), name)
            assert text.value, f"{name} gives nothing"
            serials.add((name, text.value))
        pci = ctypes.create_string_buffer(1024)
        ok(library.hlml_device_get_pci_info(device, pci), "hlml_device_get_pci_info")
        minor = ctypes.c_uint()
        ok(library.hlml_device_get_minor_number(device, ctypes.byref(minor)), "hlml_device_get_minor_number")
        assert Path(f"/dev/accel/accel{minor.value}").exists(), f"no device file of minor number {minor.value}"
        ok(library.hlml_device_register_events(device, ctypes.c_ulonglong(2), events), "hlml_device_register_events")
    assert len(serials) == 2 * count.value + 1, f"serials and uuids repeat: {sorted(serials)}"
    data = ctypes.create_string_buffer(1024)
    assert library.hlml_event_set_wait(events, data, 100) == TIMEOUT, "an event on a sound node"
    ok(library.hlml_event_set_free(events), "hlml_event_set_free")
    ok(library.hlml_shutdown(), "hlml_shutdown")


def main(what: str) -> None:
    """One of the two."""
    library = ctypes.CDLL(LIBRARY)
    if what == "plugin":
        plugin(library)
        return
    wanted = names(Path(os.environ["CONTRACT_REPOSITORY"]))
    assert wanted, "the sources name no function of libhlml"
    absent = sorted(name for name in wanted if not hasattr(library, name))
    print(f"{len(wanted)} functions, {len(absent)} absent")
    if absent:
        sys.exit(f"NameError: libhlml has no {', '.join(absent)}")


if __name__ == "__main__":
    main(sys.argv[1])
