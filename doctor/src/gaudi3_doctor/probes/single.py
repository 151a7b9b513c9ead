"""Probes of one process on one card."""

from __future__ import annotations

import importlib
import importlib.util
import time
from functools import partial
from typing import Any

from .base import Card, attempt, load


def start(settings: dict[str, Any]) -> Card:
    """Take a card."""
    return load(settings)


def numbers(card: Card) -> dict[str, Any]:
    """A product with a long inner dimension and a gather from a large table, twice each, and once on the CPU.

    Small integers make every sum exact in float32, whatever its order, so any difference is an error. A translated
    IOMMU domain spoiled just these two on a Gaudi 2 (one report).
    """
    torch = card.torch
    found: dict[str, Any] = {"identity": card.identity, "odd": []}
    generator = torch.Generator().manual_seed(1)
    inner, side = card.size(131072), card.size(512, 64)
    left = torch.randint(-3, 4, (side, inner), generator=generator).float()
    right = torch.randint(-3, 4, (inner, side), generator=generator).float()
    rows = card.size(1 << 20)
    table = torch.randint(-9, 10, (rows, 64), generator=generator).float()
    index = torch.randint(0, rows, (rows,), generator=generator, dtype=torch.int32)
    expected = {"product": left @ right, "gather": table[index.long()]}
    on_card = [each.to(card.device) for each in (left, right, table, index)]

    def product(a: Any, b: Any, t: Any, i: Any) -> Any:
        return a @ b

    def gather(a: Any, b: Any, t: Any, i: Any) -> Any:
        return torch.index_select(t, 0, i)

    for name, operation in (("product", product), ("gather", gather)):
        for run in (1, 2):
            wrong = int((operation(*on_card).cpu() != expected[name]).sum())
            found[f"{name}_{run}_wrong"] = wrong
            if wrong:
                found["odd"].append(f"the {name} has {wrong} wrong elements of {expected[name].numel()} in run {run}")
    halves = [each.bfloat16().to(card.device) for each in (left, right)]
    wrong = int(((halves[0] @ halves[1]).float().cpu() != expected["product"].bfloat16().float()).sum())
    found.update(bfloat16_product_wrong=wrong, sizes={"inner": inner, "side": side, "rows": rows})
    return found


def first_step(card: Card) -> dict[str, Any]:
    """Three steps of a small model on the card and on the CPU, then one of transformers' Llama."""
    found: dict[str, Any] = {"plain": _steps(card)}
    found["transformers"] = attempt(partial(_language_model, card, "Llama"))
    found["odd"] = [
        f"{name}: {each['error']}" for name, each in found.items() if isinstance(each, dict) and "error" in each
    ]
    worst = found["plain"]["largest_difference"]
    if not worst < 0.05:
        found["odd"].append(f"the losses of the first steps differ from the CPU's by {worst}")
    return found


def copies(card: Card) -> dict[str, Any]:
    """Bytes per second between card and host, pageable and page-locked, alone and beside a product."""
    torch = card.torch
    count = card.size(1 << 28)
    source = torch.ones(count, device=card.device)
    pageable = torch.empty(count)
    found: dict[str, Any] = {"bytes": count * 4}
    pinned = attempt(lambda: torch.empty(count).pin_memory())
    places = {"pageable": pageable, "page_locked": pinned}
    for name, place in places.items():
        if isinstance(place, dict):
            found[name] = place
            continue
        found[name] = {
            "to_host": count * 4 / card.best(partial(place.copy_, source, non_blocking=True)),
            "to_card": count * 4 / card.best(partial(source.copy_, place, non_blocking=True)),
        }
    if not isinstance(pinned, dict):
        square = torch.ones(card.size(8192), card.size(8192), device=card.device, dtype=torch.bfloat16)

        def both() -> None:
            for _ in range(20):
                square @ square
            pinned.copy_(source, non_blocking=True)

        found["twenty_products_seconds"] = card.best(lambda: [square @ square for _ in range(20)])
        found["with_a_copy_seconds"] = card.best(both)
    return found


def types(card: Card) -> dict[str, Any]:
    """Which types 64-bit values keep, and the type of each operation's result under autocast."""
    torch = card.torch
    found: dict[str, Any] = {"kept": {}, "autocast": {}}
    for name, value in (("int64", 2**40 + 1), ("float64", 1 + 2.0**-40), ("int32", 2**24 + 1), ("float32", 0.1)):
        dtype = getattr(torch, name)

        def keep(value: Any = value, dtype: Any = dtype) -> dict[str, Any]:
            there = torch.tensor([value], dtype=dtype).to(card.device)
            more = there + torch.zeros(1, dtype=dtype, device=card.device)
            exact = torch.tensor([value], dtype=dtype)
            return {
                "type_there": str(there.dtype),
                "type_of_a_sum": str(more.dtype),
                "comes_back": bool((there.cpu() == exact).all()),
                "sum_comes_back": bool((more.cpu() == exact).all()),
            }

        found["kept"][name] = attempt(keep)
    square = torch.rand(16, 16, device=card.device)
    functional = torch.nn.functional
    operations = {
        "matmul": lambda x: x @ x,
        "linear": lambda x: functional.linear(x, x),
        "bmm": lambda x: torch.bmm(x[None], x[None]),
        "addmm": lambda x: torch.addmm(x, x, x),
        "conv2d": lambda x: functional.conv2d(x[None, None], x[None, None, :3, :3]),
        "scaled_dot_product_attention": lambda x: functional.scaled_dot_product_attention(*(x[None, None],) * 3),
        "softmax": lambda x: x.softmax(-1),
        "log_softmax": lambda x: x.log_softmax(-1),
        "layer_norm": lambda x: functional.layer_norm(x, (16,)),
        "rms_norm": lambda x: functional.rms_norm(x, (16,)),
        "gelu": functional.gelu,
        "silu": functional.silu,
        "exp": torch.exp,
        "log": torch.log,
        "pow": lambda x: x**2,
        "add": lambda x: x + x,
        "mul": lambda x: x * x,
        "sum": lambda x: x.sum(),
        "mean": lambda x: x.mean(),
        "cumsum": lambda x: x.cumsum(0),
        "cat": lambda x: torch.cat([x, x.bfloat16()]),
        "embedding": lambda x: functional.embedding(torch.zeros(2, dtype=torch.int32, device=x.device), x),
        "cross_entropy": lambda x: functional.cross_entropy(x, torch.zeros(16, dtype=torch.long, device=x.device)),
        "mse_loss": lambda x: functional.mse_loss(x, x),
    }
    with torch.autocast("hpu", dtype=torch.bfloat16):
        for name, operation in operations.items():
            results = found["autocast"][name] = {}
            for given in (torch.float32, torch.bfloat16):
                results[str(given)] = attempt(partial(_type_of, operation, square.to(given)))
    return found


def attention(card: Card) -> dict[str, Any]:
    """Habana's fused attention, causal and with the same mask: difference to the CPU's, time, peak of memory."""
    torch = card.torch
    fused = importlib.import_module("habana_frameworks.torch.hpex.kernels").FusedSDPA
    length = card.size(2048, 64)
    shape = (1, 8, length, 64)
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(shape, generator=generator).bfloat16() for _ in range(3))
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
    there = [each.to(card.device) for each in (q, k, v)]
    added = torch.zeros(mask.shape).masked_fill(~mask, -1e4).bfloat16()
    masks = {"causal": None, "bool_mask": mask[None, None], "added_mask": added[None, None]}
    found: dict[str, Any] = {"shape": list(shape)}
    for name, given in masks.items():
        on_card = None if given is None else given.to(card.device)

        def call(on_card: Any = on_card) -> Any:
            return fused.apply(*there, on_card, 0.0, on_card is None, None, "None", True)

        def measured(call: Any = call) -> dict[str, Any]:
            card.hpu.reset_peak_memory_stats()
            before = card.hpu.memory_allocated()
            difference = float((call().float().cpu() - expected).abs().max())
            peak = card.hpu.max_memory_allocated() - before
            return {"largest_difference": difference, "seconds": card.best(call), "peak_bytes": peak}

        found[name] = attempt(measured)
    return found


def memory(card: Card) -> dict[str, Any]:
    """Bytes that three batch sizes should need, by the tensors that torch keeps, and what the card reports."""
    torch = card.torch
    width = card.size(4096, 64)
    found: dict[str, Any] = {"width": width, "batches": {}, "total": list(card.hpu.mem_get_info())}
    for batch in (8, 32, 128):
        rows = batch * card.size(64, 8)
        model = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width), torch.nn.GELU()
        ).to(card.device)
        optimizer = torch.optim.AdamW(model.parameters())
        parameters = sum(each.numel() * each.element_size() for each in model.parameters())
        kept: dict[int, int] = {}

        def pack(tensor: Any, kept: dict[int, int] = kept) -> Any:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        card.hpu.reset_peak_memory_stats()
        before = card.hpu.memory_allocated()
        free_before = card.hpu.mem_get_info()[0]
        for _ in range(2):
            kept.clear()  # a step's tensors need not lie where those of the step before lay
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                loss = model(torch.ones(rows, width, device=card.device)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            card.wait()
        found["batches"][str(batch)] = {
            "parameters": parameters,
            "gradients_and_moments": 3 * parameters,
            "kept_for_backward": sum(kept.values()),
            "peak_over_start": card.hpu.max_memory_allocated() - before,
            "free_before": free_before,
            "free_after": card.hpu.mem_get_info()[0],
        }
        del model, optimizer, loss
    return found


def experts(card: Card) -> dict[str, Any]:
    """Grouped matrix products in torch's forms, whether the bridge has one, and one layer of transformers' Mixtral."""
    torch = card.torch
    width, count = card.size(1024, 64), 4
    tokens = torch.randn(64, width, device=card.device, dtype=torch.bfloat16)
    weights = torch.randn(count, width, width, device=card.device, dtype=torch.bfloat16)
    ends = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device=card.device)
    found: dict[str, Any] = {"forms": {}}
    forms = {
        "torch._grouped_mm": getattr(torch, "_grouped_mm", None),
        "torch.nn.functional.grouped_mm": getattr(torch.nn.functional, "grouped_mm", None),
    }
    plain = torch.cat([part @ weight for part, weight in zip(tokens.split(16), weights)])
    for name, form in forms.items():
        if form is None:
            found["forms"][name] = "not in this torch"
            continue

        def call(form: Any = form) -> dict[str, Any]:
            difference = float((form(tokens, weights, offs=ends) - plain).abs().max())
            return {"largest_difference": difference, "seconds": card.best(lambda: form(tokens, weights, offs=ends))}

        found["forms"][name] = attempt(call)
    found["habana_mixture_of_experts"] = hasattr(torch.ops.hpu, "mixture_of_experts")
    found["layer"] = attempt(partial(_language_model, card, "Mixtral", num_hidden_layers=1, num_local_experts=count))
    return found


def compiled(card: Card) -> dict[str, Any]:
    """A small model under torch.compile with hpu_backend: times of the first and the next calls, number of graphs."""
    torch = card.torch
    counters = importlib.import_module("torch._dynamo.utils").counters
    model = _model(torch, card.size(512, 32)).to(card.device)
    batch = torch.randn(16, card.size(512, 32), device=card.device)
    plain = model(batch).detach().cpu()
    free = card.free()
    counters.clear()
    fast = torch.compile(model, backend="hpu_backend")
    first = card.seconds(lambda: fast(batch).sum().backward())
    again = card.best(lambda: fast(batch).sum().backward())
    difference = float((fast(batch).detach().cpu() - plain).abs().max())
    return {
        "first_seconds": first,
        "next_seconds": again,
        "largest_difference": difference,
        "free_bytes": {"before": free, "after": card.free()},
        "graphs": dict(counters["stats"]),
        "breaks": {str(name)[:300]: count for name, count in list(counters["graph_break"].items())[:10]},
    }


def _type_of(operation: Any, given: Any) -> str:
    return str(operation(given).dtype)


def _model(torch: Any, width: int) -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width))


def _steps(card: Card) -> dict[str, Any]:
    torch = card.torch
    width = card.size(1024, 32)
    batch = torch.randn(32, width, generator=torch.Generator().manual_seed(4))
    losses: dict[str, list[float]] = {}
    seconds: list[float] = []
    for place in ("cpu", card.device):
        model = _model(torch, width).to(place)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        given = batch.to(place)
        values = []
        for _ in range(3):
            started = time.perf_counter()
            loss = (model(given) - given).pow(2).mean()
            loss.backward()
            card.core.mark_step()
            optimizer.step()
            card.core.mark_step()
            optimizer.zero_grad()
            values.append(float(loss.detach().cpu()))
            if place != "cpu":
                seconds.append(time.perf_counter() - started)
        losses["cpu" if place == "cpu" else "card"] = values
    worst = max(abs(a - b) for a, b in zip(losses["cpu"], losses["card"]))
    return {"losses": losses, "seconds": seconds, "largest_difference": worst}


def _language_model(card: Card, name: str, **more: int) -> dict[str, Any]:
    if importlib.util.find_spec("transformers") is None:
        return {"missing": "transformers is not installed"}
    started = time.perf_counter()
    transformers = importlib.import_module("transformers")
    imported = time.perf_counter() - started
    torch = card.torch
    small = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    small.update(num_attention_heads=4, num_key_value_heads=4, **more)
    config = getattr(transformers, f"{name}Config")(**small)
    model = getattr(transformers, f"{name}ForCausalLM")(config).to(card.device)
    tokens = torch.randint(0, 256, (2, 64)).to(card.device)
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    value = float(loss.detach().cpu())
    return {"version": transformers.__version__, "import_seconds": imported, "loss": value, "finite": value == value}
