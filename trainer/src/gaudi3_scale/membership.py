"""Who may be a node of a job: whoever proves that it has the job's secret. The others get no rank and change nothing.

torch's store asks nobody who they are. Whoever reaches it can write and delete in it. Therefore

- the node that hosts the store makes up a number at its start and answers each node that asks, with a proof over the
  asking node's own number. From both follows the key of this start: what was heard at an earlier one is worth nothing;
- the state of the rendezvous and what nodes tell each other when they have met are sealed with that key. What is not
  sealed, or is older than what a node has seen, is skipped, and the state is put back.

A stranger can still keep the nodes busy by writing on and on. Only a firewall prevents that.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.internals import is_this_machine
from gaudi3_scale.meeting_store import Seal
from gaudi3_scale.secret import proof

PREFIX = "gaudi3.rendezvous."
KNOCKS = "gaudi3.knocks."
ANSWER = "gaudi3.answer."
PROOF_SECONDS = 60.0
"""How long a node waits for the proof of the node that hosts the store, which gives it within a moment."""
_AGAIN, _POLL = 1.0, 0.05
MOST = 1 << 16
"""Bytes of knocks that are looked at together; nodes knock again."""


def _log(text: str) -> None:
    print(f"gaudi3-launch: {text}", file=sys.stderr, flush=True)


class Membership:
    """What a node of a job does to be one, and whom it takes for one."""

    def __init__(self, secret: bytes, log: Callable[[str], None] = _log) -> None:
        self._secret = secret
        self._log = log
        self._key: bytes | None = None
        self._run = b""

    def join(self, create: Callable[[Any], tuple[Any, Any]], parameters: Any) -> tuple[SealedBackend, Any]:
        """In place of torch's `create_backend`: the rendezvous' state, sealed, and the store.

        Raises TrainerError where the node that hosts the store does not prove that it belongs to the job.
        """
        hosts, store = _connected(create, parameters)
        self._run = parameters.run_id.encode()
        number = os.urandom(16).hex() if hosts else self._asked(store, parameters.endpoint)
        if hosts:
            Doorkeeper(self._secret, self._run, number, self._log).watch(store)
        self._key = proof(self._secret, b"session", self._run, number.encode())
        return SealedBackend(store, self._key, parameters.run_id, self._log), store

    def seal_of(self, turn: int, met: dict[Any, int]) -> Seal:
        """What seals the messages of nodes that have met; good for these nodes and this meeting."""
        assert self._key is not None
        nodes = sorted((rank, repr(node)) for node, rank in met.items())
        return Seal(proof(self._key, b"meeting", self._run, str(turn).encode(), repr(nodes).encode()))

    def _asked(self, store: Any, endpoint: str) -> str:
        """The number of this start, which the node that hosts the store proves to be that."""
        mine = os.urandom(16).hex()
        knock = f"{mine}.{proof(self._secret, b'knock', self._run, mine.encode()).hex()}\n"
        answer, knocks = ANSWER + mine, KNOCKS + self._run.decode()
        end, again = time.monotonic() + PROOF_SECONDS, 0.0
        while (now := time.monotonic()) < end:
            if now >= again:  # the host may have missed it, as may a stranger have deleted it
                store.append(knocks, knock)
                again = now + _AGAIN
            if store.check([answer]):
                number, _, told = bytes(store.get(answer)).decode(errors="replace").partition(".")
                expected = proof(self._secret, b"answer", self._run, mine.encode(), number.encode()).hex()
                if hmac.compare_digest(told.encode(), expected.encode()):
                    store.delete_key(answer)
                    return number
            time.sleep(_POLL)
        raise TrainerError(
            f"the node that hosts the rendezvous at {endpoint} did not prove within {PROOF_SECONDS:.0f} s that it has "
            "this job's secret: give all nodes the same file, and see that no other program listens there"
        )


class Doorkeeper:
    """Answers the nodes that ask the host of the store to prove itself, and no others."""

    def __init__(self, secret: bytes, run: bytes, number: str, log: Callable[[str], None]) -> None:
        self._secret, self._run, self._number, self._log = secret, run, number, log
        self._refused = False

    def watch(self, store: Any) -> None:
        """Answer from now on, in the background, until the process or the store ends."""
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        own = TCPStore(store.host, store.port, is_master=False, wait_for_workers=False)
        threading.Thread(target=self._watch, args=(own,), name="gaudi3-doorkeeper", daemon=True).start()

    def _watch(self, store: Any) -> None:
        knocks = KNOCKS + self._run.decode()
        with suppress(RuntimeError, ValueError, TimeoutError):  # the store has ended
            while True:
                if store.check([knocks]):
                    text = store.get(knocks)
                    store.delete_key(knocks)
                    self.answer(store, text)
                time.sleep(_POLL)

    def answer(self, store: Any, text: bytes) -> None:
        """Answer the knocks that prove the secret."""
        for line in text[:MOST].splitlines():
            asked, _, told = line.partition(b".")
            if hmac.compare_digest(told, proof(self._secret, b"knock", self._run, asked).hex().encode()):
                number = self._number.encode()
                mine = proof(self._secret, b"answer", self._run, asked, number).hex()
                store.set(ANSWER + asked.decode(), f"{self._number}.{mine}")
            elif not self._refused:
                self._refused = True
                self._log("somebody without this job's secret asks to join it, and is refused")


class SealedBackend:
    """The state of the rendezvous in a store, as torch's backend has it, in which only nodes of the job can write."""

    name = "c10d"

    def __init__(self, store: Any, key: bytes, run: str, log: Callable[[str], None] = _log) -> None:
        self._store, self._key, self._run, self._log = store, key, run, log
        self._place = PREFIX + run
        self._number = 0
        self._state: bytes | None = None
        """The newest state that was seen, and how many there were before it."""
        self._foreign = b""
        self._told = False

    def get_state(self) -> tuple[bytes, bytes] | None:
        """The state, and the token with which it is replaced; None where there is none yet."""
        found = self._call(self._read)
        if self._state is not None and self._opened(found) is None:
            self._tell(found)
            sealed = self._sealed(self._state)
            self._call(lambda: self._replace(found, sealed))
            found = self._call(self._read)
        return self._judged(found)

    def set_state(self, state: bytes, token: bytes | None = None) -> tuple[bytes, bytes, bool] | None:
        """Replace the state that has this token; what is there then, its token, and whether it was replaced."""
        sealed = self._sealed(state)
        expected = token or self._foreign
        found = self._call(lambda: self._replace(expected, sealed))
        judged = self._judged(found)
        return None if judged is None else (*judged, found == sealed)

    def _read(self) -> bytes:
        return bytes(self._store.get(self._place)) if self._store.check([self._place]) else b""

    def _replace(self, expected: bytes, sealed: bytes) -> bytes:
        """What is in the store afterwards."""
        try:
            text = expected.decode("ascii")
        except UnicodeDecodeError:  # a stranger's; the store compares texts only
            self._store.set(self._place, sealed)
            return sealed
        found = bytes(self._store.compare_set(self._place, text, sealed.decode()))
        if found == expected and expected:  # as the store has it for a key that somebody deleted
            found = bytes(self._store.compare_set(self._place, "", sealed.decode()))
        return found

    def _judged(self, found: bytes) -> tuple[bytes, bytes] | None:
        opened = self._opened(found)
        if opened is not None:
            self._number, self._state = opened
            self._foreign = b""
            return opened[1], found
        self._tell(found)
        if self._state is not None:
            return self._state, found or b"-"
        self._foreign = found
        return None

    def _tell(self, found: bytes) -> None:
        if found and not self._told:
            self._told = True
            self._log(
                "somebody without this job's secret writes into the rendezvous, or repeats what was written earlier, "
                "which this node ignores: let only the job's nodes reach that port"
            )

    def _sealed(self, state: bytes) -> bytes:
        number = str(self._number + 1).encode()
        return b".".join([number, self._proof(number, state), base64.b64encode(state)])

    def _opened(self, found: bytes) -> tuple[int, bytes] | None:
        """Its number and the state; None where it is not a node's of this start, or older than what was seen."""
        try:
            number, told, text = found.split(b".")
            state = base64.b64decode(text, validate=True)
            if not hmac.compare_digest(told, self._proof(number, state)) or int(number) < self._number:
                return None
            return int(number), state
        except (ValueError, binascii.Error):
            return None

    def _proof(self, number: bytes, state: bytes) -> bytes:
        return proof(self._key, b"state", self._run.encode(), number, state).hex().encode()

    def _call(self, action: Callable[[], bytes]) -> bytes:
        from torch.distributed.elastic.rendezvous import RendezvousConnectionError

        try:
            return action()
        except (ValueError, RuntimeError, TimeoutError) as error:
            raise RendezvousConnectionError("The connection to the store has failed.") from error


def _connected(create: Callable[[Any], tuple[Any, Any]], parameters: Any) -> tuple[bool, Any]:
    """Whether this node hosts the store, and the store; torch does not say which it is where it finds out itself."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]
    from torch.distributed.elastic.rendezvous import RendezvousConnectionError

    told = parameters.get_as_bool("is_host")
    tries = [told] if told is not None else [True, False] if is_this_machine(parameters.endpoint) else [False]
    for hosts in tries:
        parameters.config["is_host"] = hosts
        try:
            _, store = create(parameters)
        except RendezvousConnectionError:
            if hosts is tries[-1]:
                raise
            continue
        if not isinstance(store, TCPStore):
            raise ConfigError("A job's secret is for a rendezvous over TCP: leave store_type out of --rdzv-conf.")
        return bool(hosts), store
    raise AssertionError("unreachable")
