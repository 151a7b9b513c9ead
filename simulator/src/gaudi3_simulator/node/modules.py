"""The driver's modules in the kernel: how large each is, and which holds which.

Sizes and holders are those that a public manual shows for 1.23.0 (HabanaAI/vllm-fork, ``scripts/docs/``). Of releases
without habanalabs_compat only the order of unloading is public, driver first: no module of them holds another.
"""

from __future__ import annotations

from . import releases

SIZES = {
    "habanalabs_ib": 98304,
    "habanalabs_en": 69632,
    "habanalabs_cn": 864256,
    "habanalabs": 2248704,
    "habanalabs_compat": 16384,
    "ib_uverbs": 139264,
    "ib_core": 430080,
}

# module: those that hold it
_HOLDERS = {
    "ib_core": ("ib_uverbs", "habanalabs_ib"),
    "ib_uverbs": ("habanalabs_ib",),
}
_HOLDERS_WITH_COMPAT = {
    "habanalabs_cn": ("habanalabs_en",),
    "habanalabs_compat": ("habanalabs",),
}


def holders(module: str, with_compat: bool) -> tuple[str, ...]:
    """Modules that hold this one while they are loaded."""
    return _HOLDERS.get(module, ()) + (_HOLDERS_WITH_COMPAT.get(module, ()) if with_compat else ())


def depends(module: str, release: str) -> list[str]:
    """What ``modinfo`` shows as dependencies; habanalabs_ib does not name the kernel's modules that it needs."""
    with_compat = releases.release_info(release).has_compat
    return [name for name in releases.module_names(release) if module in holders(name, with_compat)]


def module_text(name: str, release: str) -> str:
    """Text of ``/lib/modules/<kernel>/updates/dkms/<name>.ko``."""
    info = releases.release_info(release)
    names = releases.module_names(release)
    if name not in names:
        raise ValueError(f"{name} is not a module of release {release}: it has {', '.join(names)}")
    nic = name in ("habanalabs_cn", "habanalabs_en", "habanalabs_ib")
    return (
        "gaudi3-simulator kernel module (text, no machine code)\n"
        f"name: {name}\n"
        f"version: {info.nic_driver if nic else info.driver}\n"
        f"depends: {','.join(depends(name, release))}\n"
        f"description: Stands in for {name} of release {info.release}-{info.build} on a simulated node\n"
    )
