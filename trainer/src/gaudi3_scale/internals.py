"""Every internal of torch and Lightning that the trainer relies on. No other file of the package touches one.

What has an underscore in front, or stands in no documentation, may change with any release. Each is listed here once,
with the reason and the versions that have it, and is looked up when it is used: where it has changed, the trainer ends
with a sentence that names it, and does not go on in another way. `tests/test_internals.py` holds the list against the
installed versions; `make torch-matrix` holds it against the files of the other supported ones.

Importing this module imports neither torch nor Lightning.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gaudi3_scale.errors import TrainerError
from gaudi3_scale.meeting_store import MeetingStore

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.distributed.checkpoint.filesystem import _StorageInfo as StorageInfo
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_flatten, tree_flatten_with_path, tree_leaves, tree_unflatten

__all__ = [
    "FakeTensor",
    "FakeTensorMode",
    "StorageInfo",
    "TorchDispatchMode",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_unflatten",
]


class InternalChangedError(TrainerError):
    """The installed torch or Lightning has an internal no more, or in another form."""


@dataclass(frozen=True)
class Internal:
    """Something of torch or Lightning that no documentation promises."""

    module: str
    name: str
    """In the module; with dots for a member of a class."""
    why: str
    versions: str
    """Those that were looked into and have it."""
    parameters: tuple[str, ...] | None = None
    """Of a function whose arguments matter."""
    attribute: bool = False
    """An attribute that the class sets on its objects."""

    def get(self) -> Any:
        """The thing itself; of an attribute, the class whose objects have it. InternalChangedError if there is none."""
        *path, last = self.name.split(".")
        try:
            found: Any = importlib.import_module(self.module)
        except ImportError:
            raise self._changed("has no") from None
        for part in path:
            found = getattr(found, part, None)
        if self.attribute:
            if not inspect.isclass(found) or not _sets(found, last):
                raise self._changed("has no")
            return found
        missing = object()
        found = getattr(found, last, missing)
        if found is missing:
            raise self._changed("has no")
        if self.parameters is not None:
            has = tuple(inspect.signature(found).parameters)
            if has != self.parameters:
                details = f"with ({', '.join(has)}) in place of ({', '.join(self.parameters)})"
                raise self._changed("has", details)
        return found

    @property
    def key(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]

    def check(self) -> None:
        """Raise InternalChangedError if it is not as it is used."""
        self.get()

    def of(self, thing: Any) -> Any:
        """This attribute of an object."""
        if not hasattr(thing, self.key):
            raise self._changed("has no")
        return getattr(thing, self.key)

    def put(self, thing: Any, value: Any) -> None:
        """Set this attribute of an object, which has one already."""
        self.of(thing)
        setattr(thing, self.key, value)

    def _changed(self, verb: str, *details: str) -> InternalChangedError:
        library = self.module.split(".")[0]
        version = getattr(sys.modules.get(library), "__version__", "as installed")
        said = " ".join([f"{library} {version} {verb} {self.module}:{self.name}", *details])
        return InternalChangedError(
            f"{said}, which the trainer uses: install {self.versions}, or a newer gaudi3-scale."
        )


def _sets(kind: type, name: str) -> bool:
    """Has this class, or one that it is made of, an attribute of this name?"""
    for base in kind.__mro__:
        theirs = base.__module__.split(".")[0] in ("torch", "lightning")
        if theirs and (name in vars(base) or re.search(rf"\b{name}\b", inspect.getsource(base))):
            return True
    return False


TORCH = "torch 2.9 to 2.13"
LIGHTNING = "lightning 2.6"
_AGENT = "torch.distributed.elastic.agent.server.api"
_RENDEZVOUS = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"
_MULTIPROCESSING = "torch.distributed.elastic.multiprocessing.api"

# Process groups and checkpoints.
SET_TIMEOUT = Internal(
    "torch.distributed.distributed_c10d", "_set_pg_timeout",
    "Waiting for another process is allowed to take long before the first step only; a group has no other way to say "
    "so once it is made.", TORCH, ("timeout", "group"),
)  # fmt: skip
STORAGE_INFO = Internal(
    "torch.distributed.checkpoint.filesystem", "_StorageInfo",
    "FileSystemReader takes a tensor's place in the file as an object of this class.", TORCH,
)  # fmt: skip
STORAGE_PREFIX = Internal(
    "torch.distributed.checkpoint.filesystem", "_StoragePrefix",
    "Plans of a sharded save have objects of this class, and are sent as data.", TORCH,
)  # fmt: skip
PLAN_EXCHANGE = Internal(
    "torch.distributed.checkpoint.utils", "_DistWrapper",
    "Ranks exchange the plans of a sharded save through it, which unpickles what a peer sends.", TORCH,
    ("group", "use_dist", "coordinator_rank"),
)  # fmt: skip
SAVER_EXCHANGE, LOADER_EXCHANGE = (
    Internal(f"torch.distributed.checkpoint.state_dict_{name}", "_DistWrapper", "Where it is taken from.", TORCH)
    for name in ("saver", "loader")
)
SPECIFICATION = Internal(
    "torch.distributed.tensor", "DTensor._spec",
    "A copy of a DTensor in host memory: `from_local` would move it back to the mesh's device.", TORCH,
)  # fmt: skip

# Collectives that are noted, so that a hang can be explained.
FUNCTIONAL = Internal(
    "torch.distributed._functional_collectives", "all_reduce",
    "DTensor calls its collectives there, and not by torch.distributed.", TORCH,
)  # fmt: skip
GROUP_NAME = Internal(
    "torch.distributed._functional_collectives", "_resolve_group_name",
    "DTensor names a group by a mesh and its dimension, a list of ranks, or its name.", TORCH, ("group", "tag"),
)  # fmt: skip
GROUP_OF_NAME = Internal(
    "torch.distributed.distributed_c10d", "_resolve_process_group", "The group with this name, and so its ranks.",
    TORCH,
)  # fmt: skip

# Prediction of memory, on fake tensors.
FAKE_TENSOR, FAKE_MODE = (
    Internal("torch._subclasses.fake_tensor", name, "A step is predicted without allocating anything.", TORCH)
    for name in ("FakeTensor", "FakeTensorMode")
)
DISPATCH_MODE = Internal(
    "torch.utils._python_dispatch", "TorchDispatchMode", "Sees every operation, and so every storage made.", TORCH
)
TREE_FLATTEN, TREE_FLATTEN_PATH, TREE_LEAVES, TREE_UNFLATTEN = (
    Internal("torch.utils._pytree", name, "Batches are nests of tensors; torch.utils.pytree is of 2.10.", TORCH, first)
    for name, first in (
        ("tree_flatten", ("tree", "is_leaf")),
        ("tree_flatten_with_path", ("tree", "is_leaf")),
        ("tree_leaves", ("tree", "is_leaf")),
        ("tree_unflatten", ("leaves", "treespec")),
    )
)
RECORD_MEMORY, DUMP_MEMORY = (
    Internal("torch.cuda.memory", name, "A history of allocations has no other way out of torch; of CUDA alone.", TORCH)
    for name in ("_record_memory_history", "_dump_snapshot")
)
STORAGE_KEY = Internal(
    "torch", "UntypedStorage._cdata", "Tells storages of fake tensors apart, which have no address.", TORCH
)
GROUPED_PRODUCT = Internal(
    "torch", "ops.aten._grouped_mm", "The product of experts, whose FLOPs and shapes torch does not count.", TORCH
)
CPU_ATTENTION = Internal(
    "torch", "ops.aten._scaled_dot_product_flash_attention_for_cpu",
    "The attention of processors, whose FLOPs torch does not count.", TORCH,
)  # fmt: skip
FAKE_STORE = Internal(
    "torch.testing._internal.distributed.fake_pg", "FakeStore",
    "A sharded step is predicted in one process, in a group of any size that exchanges nothing.", TORCH,
)  # fmt: skip
FAKE_COLLECTIVES = Internal(
    "torch.distributed._tools.fake_collectives", "non_functional_collectives",
    "torch 2.9 has a rule for a collective of fake tensors only once this module is imported.", TORCH,
)  # fmt: skip
CHECKPOINT_WRAPPER = Internal(
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper", "CheckpointWrapper._checkpoint_wrapped_module",
    "A block that torch's wrapper recomputes counts as recomputed.", TORCH, attribute=True,
)  # fmt: skip
PARAMETERS, BUFFERS = (
    Internal(
        "torch", f"nn.Module.{name}", "One module is filled at a time, in a copy that keeps its class.", TORCH,
        attribute=True,
    )
    for name in ("_parameters", "_buffers")
)  # fmt: skip

# torchrun.
AGENT = Internal(
    "torch.distributed.launcher.api", "LocalElasticAgent",
    "torchrun takes this class for its agent and lets nobody name another.", TORCH,
)  # fmt: skip
START_WORKERS = Internal(
    _AGENT, "SimpleElasticAgent._start_workers", "Signals are passed on before the first process starts.", TORCH,
    ("self", "worker_group"),
)  # fmt: skip
MONITOR_WORKERS = Internal(
    _AGENT, "SimpleElasticAgent._monitor_workers", "torchrun takes every exit code but 0 for a failure.", TORCH,
    ("self", "worker_group"),
)  # fmt: skip
MEET = Internal(
    _AGENT, "SimpleElasticAgent._rendezvous", "A node that leaves while all meet has the others wait, and then fail.",
    TORCH, ("self", "worker_group"),
)  # fmt: skip
ASSIGN_RANKS = Internal(
    _AGENT, "SimpleElasticAgent._assign_worker_ranks", "Waits a minute for what each node writes after all have met.",
    TORCH, ("self", "store", "group_rank", "group_world_size", "spec"),
)  # fmt: skip
WORKER_GROUP = Internal(
    _AGENT, "SimpleElasticAgent._worker_group", "Has the rendezvous that this node takes part in.", TORCH,
    attribute=True,
)  # fmt: skip
RESTARTS_LEFT = Internal(
    _AGENT, "SimpleElasticAgent._remaining_restarts", "A node that leaves is no failure to be counted.", TORCH,
    attribute=True,
)  # fmt: skip
PROCESSES = Internal(
    "torch.distributed.elastic.agent.server.local_elastic_agent", "LocalElasticAgent._pcontext",
    "Has the processes, whose exit codes torchrun does not tell.", TORCH, attribute=True,
)  # fmt: skip
CLOSE = Internal(
    _MULTIPROCESSING, "PContext.close",
    "A process that was told to end has 30 s in torch before 2.13, whatever the launcher is given.", TORCH,
    ("self", "death_sig", "timeout"),
)  # fmt: skip
ON_SIGNAL = Internal(
    _MULTIPROCESSING, "_terminate_process_handler", "torch 2.9 has no option for the signals that it passes on.",
    TORCH, ("signum", "frame"),
)  # fmt: skip
NODE, RENDEZVOUS_STATE, OPERATIONS = (
    Internal(
        _RENDEZVOUS, f"DynamicRendezvousHandler.{name}",
        "A node says that it leaves, so that others need not wait for it; a spare knows that it was one.", TORCH,
        attribute=True,
    )
    for name in ("_this_node", "_state_holder", "_op_executor")
)  # fmt: skip
SPARES = Internal(
    _RENDEZVOUS, "_RendezvousState.redundancy_list", "Has the nodes that were not needed.", TORCH, attribute=True
)
STOP_HEARTBEATS = Internal(
    _RENDEZVOUS, "DynamicRendezvousHandler._stop_heartbeats", "Of a node that leaves.", TORCH, ("self",)
)
DEADLINE = Internal(
    _RENDEZVOUS, "DynamicRendezvousHandler._get_deadline", "Of a node that leaves.", TORCH, ("self", "timeout")
)
STORE = Internal(
    _RENDEZVOUS, "DynamicRendezvousHandler._get_store",
    "A node that has met waits there for a minute for the address of the first, which may have left.", TORCH, ("self",),
)  # fmt: skip
EXIT = Internal(
    _RENDEZVOUS, "_RendezvousExitOp", "Takes a node out of the rendezvous and leaves it open for others.", TORCH
)
ACTION = Internal(
    _RENDEZVOUS, "_Action", "A node that waits to take part stays listed when it leaves, and the others wait for it.",
    TORCH,
)  # fmt: skip
ROUND, NODE_DESCRIPTION = (
    Internal(_RENDEZVOUS, name, "Made of checked values, as the state in the store is not to be unpickled.", TORCH)
    for name in ("_RendezvousState", "_NodeDesc")
)
CREATE_BACKEND = Internal(
    "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend", "create_backend",
    "The state of the rendezvous is sealed with the job's secret; torchrun lets nobody put another backend in.", TORCH,
    ("params",),
)  # fmt: skip
THIS_MACHINE = Internal(
    "torch.distributed.elastic.rendezvous.utils", "_matches_machine_hostname",
    "Whether torch would have this node host the store, which it does not tell afterwards.", TORCH, ("host",),
)  # fmt: skip
UNPICKLE = Internal(_RENDEZVOUS, "pickle", "The state in the store is unpickled by it, whoever wrote it there.", TORCH)

# Lightning's Trainer.
CHOOSE_STRATEGY = Internal(
    "lightning.pytorch.trainer.connectors.accelerator_connector", "_AcceleratorConnector._choose_strategy",
    "The registries cannot say which strategy `auto` is: it is an error for `hpu`, and the CPU for what is not known.",
    LIGHTNING, ("self",),
)  # fmt: skip
NODES, DEVICES = (
    Internal(
        "lightning.pytorch.trainer.connectors.accelerator_connector", f"_AcceleratorConnector.{name}",
        "Tell one process from several while the strategy is chosen.", LIGHTNING, attribute=True,
    )
    for name in ("_num_nodes_flag", "_parallel_devices")
)  # fmt: skip
SIGNAL_CONNECTOR = Internal(
    "lightning.pytorch", "Trainer._signal_connector",
    "Lightning broadcasts inside its handler of SIGTERM, where ranks wait for one another for good.", LIGHTNING,
    attribute=True,
)  # fmt: skip
BROADCAST = Internal(
    "lightning.pytorch.loops.training_epoch_loop", "_TrainingEpochLoop._broadcast_sigterm_tensor",
    "A broadcast and a synchronisation before every batch, for signals that the trainer hears itself.", LIGHTNING,
    ("self",),
)  # fmt: skip
DDP_BACKEND, FSDP_BACKEND, DDP_TIMEOUT, FSDP_TIMEOUT = (
    Internal(
        "lightning.pytorch.strategies", f"{kind}._{name}",
        "The group is made before Lightning makes one, with the backend of the device and a store of its own.",
        LIGHTNING, attribute=True,
    )
    for name in ("process_group_backend", "timeout")
    for kind in ("DDPStrategy", "ModelParallelStrategy")
)  # fmt: skip
DATA_PARALLEL, TENSOR_PARALLEL = (
    Internal(
        "lightning.pytorch.strategies", f"ModelParallelStrategy._{name}",
        "How many processes there are is known only when the strategy is set up; `auto` splits matrices in a node.",
        LIGHTNING, attribute=True,
    )
    for name in ("data_parallel_size", "tensor_parallel_size")
)  # fmt: skip

ALL: tuple[Internal, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Internal))

OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""Variable of torch 2.9 to 2.13, in no documentation: "1" gives the processes a store of their own at each meeting.

A node that comes late, or comes back, needs it. With a shared store torch tells the store's address at the first
meeting only: a node that joins a later one looks for it in vain, and the job fails. A shared store is also that of the
first node of long ago, which may be gone.
"""

MEETINGS = 4
"""So often the nodes meet, when one of those that had met is gone before the processes start."""

_LISTED = (
    FAKE_TENSOR, FAKE_MODE, STORAGE_INFO, DISPATCH_MODE, TREE_FLATTEN, TREE_FLATTEN_PATH, TREE_LEAVES, TREE_UNFLATTEN
)  # fmt: skip
_NAMES = {each.key.removeprefix("_"): each for each in _LISTED}


def __getattr__(name: str) -> Any:
    """`from gaudi3_scale.internals import FakeTensor` looks it up then."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _NAMES[name].get()


def functional_collectives() -> Any:
    """The module that DTensor calls its collectives in."""
    FUNCTIONAL.check()
    return importlib.import_module(FUNCTIONAL.module)


def like(tensor: Any, local: Any) -> Any:
    """A DTensor that differs in its local part only."""
    from torch.distributed.tensor import DTensor

    return DTensor(local, SPECIFICATION.of(tensor), requires_grad=False)  # type: ignore[no-untyped-call]


def storage_key(storage: Any) -> int:
    """Tells an untyped storage from others that are alive."""
    key: int = STORAGE_KEY.of(storage)
    return key


def with_tensors(module: Any, parameters: dict[str, Any], buffers: dict[str, Any]) -> None:
    """Give a shallow copy of a module these tensors, and leave those of the module it was copied from."""
    PARAMETERS.put(module, {**PARAMETERS.of(module), **parameters})
    BUFFERS.put(module, {**BUFFERS.of(module), **buffers})


def is_wrapped(module: Any) -> bool:
    """Is this torch's wrapper that recomputes a block?"""
    return hasattr(module, CHECKPOINT_WRAPPER.key)


def have_wait(seconds: int) -> None:
    """Have torchrun wait so long before it kills a process, whatever makes it end the process.

    One that is stopped would hear no signal but SIGKILL: it is woken with what it started, and ends by the signal.
    """
    original = CLOSE.get()

    def close(self: Any, death_sig: Any = None, timeout: int = seconds) -> None:
        for handler in getattr(self, "subprocess_handlers", {}).values():
            if handler.proc.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(handler.proc.pid, signal.SIGCONT)  # torchrun gives each a session of its own
        original(self, death_sig, seconds)

    importlib.import_module(_MULTIPROCESSING).PContext.close = close


def have_agent(agent: type) -> None:
    """Have torchrun use this agent."""
    AGENT.get()
    setattr(importlib.import_module(AGENT.module), AGENT.name, agent)


def have_state_reader(read: Callable[[bytes], Any]) -> None:
    """Have the rendezvous read its state with this function, which raises pickle.UnpicklingError."""
    theirs = UNPICKLE.get()
    reader = SimpleNamespace(dumps=theirs.dumps, loads=read, PickleError=theirs.PickleError)
    setattr(importlib.import_module(UNPICKLE.module), UNPICKLE.name, reader)


def have_plan_exchange(make: Callable[..., Any]) -> None:
    """Have sharded saves and loads exchange their plans with what `make` gives, called as torch's own class is."""
    for each in (SAVER_EXCHANGE, LOADER_EXCHANGE):
        each.check()
        setattr(importlib.import_module(each.module), each.name, make)


def have_backend(join: Callable[[Callable[[Any], Any], Any], Any]) -> None:
    """Have the rendezvous keep its state with what `join` gives of torch's own `create_backend` and its parameters."""
    original = CREATE_BACKEND.get()
    setattr(importlib.import_module(CREATE_BACKEND.module), CREATE_BACKEND.name, partial(join, original))


def is_this_machine(endpoint: str) -> bool:
    """Would torch take the host of an endpoint for this machine?"""
    from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

    found: bool = THIS_MACHINE.get()(parse_rendezvous_endpoint(endpoint, default_port=29400)[0])
    return found


@contextlib.contextmanager
def signals_put_off() -> Iterator[None]:
    """Act on a signal when this is over: torchrun forgets processes that it is just starting, and leaves them there."""
    original, held, over = ON_SIGNAL.get(), list[tuple[int, Any]](), False

    def handler(signum: int, frame: Any) -> None:
        if over:
            original(signum, frame)
        else:
            held.append((signum, frame))

    where = importlib.import_module(ON_SIGNAL.module)
    setattr(where, ON_SIGNAL.name, handler)
    try:
        yield
    finally:
        setattr(where, ON_SIGNAL.name, original)
        over = True
    if held:
        original(*held[0])


def _be_heard(context: Any, deadline: float) -> Any:
    """The first action of a node that leaves: a heartbeat, where its last one is late or never left it.

    Such a node takes itself off its own copy of the lists, finds nothing to do, and would stay on those of the others.
    """
    heard = context.node in context.state.last_heartbeats or time.monotonic() > deadline
    return ACTION.get().FINISH if heard else ACTION.get().KEEP_ALIVE


def _exit(context: Any, deadline: float) -> Any:
    """The next action of a node that leaves: out of every list, where torch takes it from those at work alone.

    One that stays listed as waiting has the others stop, and meet without it, until its heartbeat is missed.
    """
    if context.node in context.state.wait_list:
        return ACTION.get().REMOVE_FROM_WAIT_LIST
    if context.node in SPARES.of(context.state):
        return ACTION.get().REMOVE_FROM_REDUNDANCY_LIST
    return EXIT.get()()(context, deadline)


def watched_agent() -> Any:
    """torchrun's agent of a node, with names for what is internal; imported here, as torch is."""
    from torch.distributed import DistStoreError
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler

    for each in (START_WORKERS, MONITOR_WORKERS, MEET, ASSIGN_RANKS, WORKER_GROUP, RESTARTS_LEFT, PROCESSES, STORE):
        each.check()

    class WatchedAgent(LocalElasticAgent):
        """For a class of the launcher."""

        seal_of: Any = None
        """Makes the seal of a meeting of its number and the nodes with their ranks; None where nothing is sealed."""

        def before_meeting(self) -> None:
            """The nodes are about to meet."""

        def before_start(self) -> None:
            """The processes of this node are about to start."""

        def after_start(self, processes: list[Any], ranks: list[Any]) -> None:
            """The processes of this node run; each with its rank."""

        def after_look(self, result: Any) -> Any:
            """What a look at the processes gave, and shall give."""
            return result

        def _start_workers(self, worker_group: Any) -> dict[int, Any]:
            with signals_put_off():
                self.before_start()
                started: dict[int, Any] = super()._start_workers(worker_group)
            workers = worker_group.workers
            self.after_start([started[each.local_rank] for each in workers], [each.global_rank for each in workers])
            return started

        def _rendezvous(self, worker_group: Any) -> None:
            self.before_meeting()
            handler: Any = worker_group.spec.rdzv_handler
            if isinstance(handler, DynamicRendezvousHandler):
                setattr(handler, STORE.key, partial(self._store_of_those_who_met, handler))
            for _ in range(MEETINGS - 1):
                with contextlib.suppress(DistStoreError):
                    super()._rendezvous(worker_group)
                    return
                print("gaudi3-launch: a node left while the nodes met: they meet again", file=sys.stderr, flush=True)
            super()._rendezvous(worker_group)

        def _store_of_those_who_met(self, handler: Any) -> MeetingStore:
            met = dict(RENDEZVOUS_STATE.of(handler).state.participants)

            def all_here() -> bool:
                handler.num_nodes_waiting()  # reads the state anew
                ranks = sorted(met.values())
                return RENDEZVOUS_STATE.of(handler).state.participants == met and ranks == [*range(len(ranks))]

            seal = self.seal_of(RENDEZVOUS_STATE.of(handler).state.round, met) if self.seal_of else None
            return MeetingStore(STORE.get()(handler), all_here, seal)

        def _assign_worker_ranks(self, store: Any, group_rank: int, group_world_size: int, spec: Any) -> Any:
            if not isinstance(store, MeetingStore):
                store = MeetingStore(store)
            return super()._assign_worker_ranks(store, group_rank, group_world_size, spec)

        def _monitor_workers(self, worker_group: Any) -> Any:
            return self.after_look(super()._monitor_workers(worker_group))

        @property
        def meeting_point(self) -> tuple[Any, int, int]:
            """Where the nodes of this start have met, which of them this is, and how many they are."""
            group: Any = self._worker_group
            return group.store, int(group.group_rank), int(group.group_world_size)

        @property
        def restarts_left(self) -> int:
            """How often the processes may be restarted yet."""
            return self._remaining_restarts

        @restarts_left.setter
        def restarts_left(self, number: int) -> None:
            self._remaining_restarts = number

        def exit_codes(self) -> set[int | None]:
            """How the last processes ended; None for one that has not."""
            handlers = getattr(self._pcontext, "subprocess_handlers", {})
            return {handler.proc.poll() for handler in handlers.values()}

        def was_spare(self) -> bool:
            """Did the others meet without this node?"""
            handler: Any = self._worker_group.spec.rdzv_handler
            return NODE.of(handler) in SPARES.of(RENDEZVOUS_STATE.of(handler).state)

        def leave_rendezvous(self) -> None:
            """It stays open for those who go on, who need not wait for this node's heartbeat to fail."""
            handler: Any = self._worker_group.spec.rdzv_handler
            with contextlib.suppress(Exception):  # then the others notice by themselves, some seconds later
                STOP_HEARTBEATS.of(handler)()
                deadline = DEADLINE.of(handler)(handler.settings.timeout.close)
                for step in (_be_heard, _exit):
                    OPERATIONS.of(handler).run(step, deadline)

        def leave_instead_of_closing(self) -> None:
            """From here on torchrun's shutdown leaves the rendezvous, which stays open for the others."""
            handler: Any = self._worker_group.spec.rdzv_handler
            handler.shutdown = self.leave_rendezvous

    return WatchedAgent


def have_choose(lightning: str, choose: Callable[[Any, int, int], str | None]) -> None:
    """Have a Lightning ask `choose(accelerator, nodes, devices)` for the strategy that `auto` is; None leaves it to it.

    `lightning` is lightning.pytorch or pytorch_lightning.
    """
    CHOOSE_STRATEGY.check()
    where = CHOOSE_STRATEGY.module.replace("lightning.pytorch", lightning, 1)
    kind: Any = importlib.import_module(where)._AcceleratorConnector
    original = kind._choose_strategy

    def chosen(self: Any) -> Any:
        return choose(self.accelerator, NODES.of(self), len(DEVICES.of(self))) or original(self)

    kind._choose_strategy = chosen


def without_signals(trainer: Any) -> None:
    """Keep Lightning's own handling of signals out of a Trainer, or its twin's, that has not begun to fit.

    Lightning 2.6 broadcasts from inside its handler of SIGTERM: a rank that gets it alone waits there for others, which
    wait for it in another collective (seen: two ranks, SIGTERM to one, neither ended within 26 seconds). It broadcasts
    before every batch besides, with a synchronisation of the device, and swallows the error if a rank is gone.
    """
    SIGNAL_CONNECTOR.of(trainer).register_signal_handlers = _nothing
    BROADCAST.put(trainer.fit_loop.epoch_loop, _nothing)


def _nothing() -> None:
    """Instead of what Lightning would do."""


def group_of(strategy: Any) -> tuple[str | None, Any]:
    """The backend and the timeout that a distributed strategy was given."""
    return DDP_BACKEND.of(strategy), DDP_TIMEOUT.of(strategy)


def name_backend(strategy: Any, backend: str) -> None:
    """Say which backend the group of a distributed strategy has."""
    DDP_BACKEND.put(strategy, backend)


def set_sizes(strategy: Any, data: int, tensor: int) -> None:
    """Have `data` processes share the data, and `tensor` processes each matrix."""
    DATA_PARALLEL.put(strategy, data)
    TENSOR_PARALLEL.put(strategy, tensor)
