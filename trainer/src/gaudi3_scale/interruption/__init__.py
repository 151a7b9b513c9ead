"""Leaving in order: who asks for it, how the ranks agree on the step, and what is saved before the deadline.

    notices.py     what was heard, the second signal, and the deadline that ends the process whatever it does
    patience.py    how long the launcher waits for a process that it told to end
    signals.py     SIGTERM and SIGUSR1, heard even while the process waits for others
    cloud_notice.py  what AWS, Google Cloud and Azure say of the node
    exit_code.py   how a job that left in order ends
    agreement.py   all ranks stop at the same step, though only one got the notice
    last_checkpoint.py  the last checkpoint, if there is time for it
    leaving.py     all of it together, for a job and for callbacks/interruption_callback.py

Nothing here imports torch before it is needed: notices are heard from the process's first moment on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaudi3_scale.interruption.exit_code import EXIT_CODE
from gaudi3_scale.interruption.notice import Notice
from gaudi3_scale.interruption.notices import Interrupted, Notices
from gaudi3_scale.lazy import lazily

if TYPE_CHECKING:
    from gaudi3_scale.interruption.agreement import Agreement

__all__ = ["EXIT_CODE", "Agreement", "Interrupted", "InterruptionCallback", "Notice", "Notices"]

__getattr__ = lazily(
    __name__,
    {
        "Agreement": "interruption.agreement",
    },
)
