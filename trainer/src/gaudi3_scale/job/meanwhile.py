"""Work of some processes for which the others wait, however long it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from gaudi3_scale.distributed.process_group import ProcessGroup

FIRST_SECONDS = 0.2
POLL_SECONDS = 1.0


def meanwhile(
    process_group: ProcessGroup, name: str, work: Callable[[], object] | None, between: Callable[[], None]
) -> None:
    """Do the work where there is any; an error of anybody's is everyone's. Collective.

    No collective waits for it: the ranks ask each other every second whether all are done, and call `between`, which
    may raise to give up.
    """
    failures: list[BaseException] = []

    def attempt() -> None:
        assert work is not None
        try:
            work()
        except BaseException as error:  # raised by `result`, in the thread that waits
            failures.append(error)

    thread = threading.Thread(target=attempt, name=name, daemon=True)
    if work is not None:
        thread.start()
        thread.join(FIRST_SECONDS)
    between()
    while not all(process_group.gather(not thread.is_alive())):
        if work is not None:
            thread.join(POLL_SECONDS)
        else:
            time.sleep(POLL_SECONDS)
        between()

    def result() -> None:
        if failures:
            raise failures[0]

    process_group.must_all(result)
