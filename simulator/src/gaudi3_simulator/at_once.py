"""Work that does not wait for other work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def at_once(*parts: Callable[[], object]) -> None:
    """Do all parts at the same time; the error of the first one that failed, once all have ended."""
    with ThreadPoolExecutor(len(parts)) as pool:
        begun = [pool.submit(part) for part in parts]
    for each in begun:
        each.result()
