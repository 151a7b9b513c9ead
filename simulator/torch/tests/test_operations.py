"""Operations that need something else than the CPU's kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("clean")

CRASHES = {
    "zeros": "print(torch._efficientzerotensor((2, 3), dtype=torch.{dtype}, device='hpu').add(1).tolist())",
    "sign": "x = torch.tensor([[-2.0], [3]], device='hpu', dtype=torch.{dtype}, requires_grad=True)\n"
    "torch.sgn(x).sum().backward()\nprint((x.grad + 1).tolist())",
    "forward": "x = torch.full((2, 1), 3.0, device='hpu', dtype=torch.{dtype})\n"
    "print(torch.func.jvp(lambda x: x * x, (x,), (torch.ones_like(x),))[1].tolist())",
    "unused": "x = torch.full((2, 1), 3.0, device='hpu', dtype=torch.{dtype})\n"
    "print((torch.func.jvp(lambda x: torch.ones_like(x), (x,), (x,))[1] + 1).tolist())",
}
PRINTED = {
    "zeros": "[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]",
    "sign": "[[1.0], [1.0]]",
    "forward": "[[6.0], [6.0]]",
    "unused": "[[1.0], [1.0]]",
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_zeros_without_data_do_not_crash(run: Callable[..., subprocess.CompletedProcess[str]], dtype: str) -> None:
    for name, code in CRASHES.items():
        result = run("import torch\n" + code.format(dtype=dtype))
        assert (result.returncode, result.stdout.strip()) == (0, PRINTED[name]), f"{name}: {result.stderr[-500:]}"


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("shape", [(3,), (2, 2), ()])
def test_take_accepts_both_kinds_of_indices(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    values = torch.randn(3, 4)
    index = torch.randint(0, 12, shape)
    on_card = values.to("hpu")
    assert torch.equal(torch.take(on_card, index.to("hpu", dtype)).cpu(), torch.take(values, index))
    out = torch.empty(0, device="hpu")
    torch.take(on_card, index.to("hpu", dtype), out=out)
    assert torch.equal(out.cpu(), torch.take(values, index))


@pytest.mark.parametrize("shape", [(), (1,), (3, 4)], ids=str)
@pytest.mark.parametrize("name", ["trunc", "floor", "ceil"])
def test_booleans_round_to_themselves(name: str, shape: tuple[int, ...]) -> None:
    values = torch.rand(shape) > 0.5
    on_card = values.to("hpu")
    rounded = getattr(torch, name)(on_card)
    assert rounded.dtype is torch.bool and torch.equal(rounded.cpu(), values)
    assert rounded.data_ptr() != on_card.data_ptr(), "a tensor of its own"
    out = torch.empty(0, dtype=torch.bool, device="hpu")
    assert getattr(torch, name)(on_card, out=out) is out and torch.equal(out.cpu(), values)
    assert getattr(on_card, f"{name}_")() is on_card and torch.equal(on_card.cpu(), values)
    with pytest.raises(RuntimeError, match="Bool"):
        getattr(torch, name)(values)  # the CPU has no kernel


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.int16])
def test_other_types_round_as_on_the_cpu(dtype: torch.dtype) -> None:
    values = (torch.rand(3, 4) * 7).to(dtype)
    for name in ("trunc", "floor", "ceil"):
        on_card = values.to("hpu")
        assert torch.equal(getattr(torch, name)(on_card).cpu(), getattr(torch, name)(values))
        assert torch.equal(getattr(on_card, f"{name}_")().cpu(), getattr(torch, name)(values))


def encoder(size: int, heads: int, sequence: int) -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(size, heads, size * 2, dropout=0.0, batch_first=True)
    return layer.to("hpu"), torch.randn(2, sequence, size, device="hpu")


def llama(size: int, heads: int, sequence: int) -> tuple[nn.Module, torch.Tensor]:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=size, intermediate_size=size * 2, num_hidden_layers=2, num_attention_heads=heads,
        num_key_value_heads=1, max_position_embeddings=32, use_cache=False,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).to("hpu"), torch.randint(0, 50, (2, sequence), device="hpu")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("build", "sizes"), [(encoder, (16, 2, 5)), (encoder, (24, 3, 4)), (llama, (16, 2, 6))], ids=lambda x: str(x)[:20]
)
def test_attention_compiles(
    build: Callable[..., tuple[nn.Module, torch.Tensor]], sizes: tuple[int, int, int], backend: str
) -> None:
    torch.manual_seed(2)
    model, inputs = build(*sizes)
    results = []
    for run in (model, torch.compile(model, backend=backend, fullgraph=build is encoder)):
        output = run(inputs)
        output = output if isinstance(output, torch.Tensor) else output.logits
        output.square().mean().backward()
        gradients = [parameter.grad.cpu() for parameter in model.parameters() if parameter.grad is not None]
        results.append([output.detach().cpu(), *gradients])
        model.zero_grad()
        del output
    torch._dynamo.reset()
    assert len(results[0]) > 10
    torch.testing.assert_close(results[1], results[0])


def test_the_choice_of_attention_is_the_cpus() -> None:
    for shape, mask, dropout in (
        ((2, 4, 5, 8), None, 0.0),
        ((1, 2, 3, 4), torch.ones(3, 3), 0.0),
        ((2, 3, 4), None, 0.1),
    ):
        parts = [torch.randn(shape) for _ in range(3)]
        card = [part.to("hpu") for part in parts]
        choice = torch._fused_sdp_choice(*card, None if mask is None else mask.to("hpu"), dropout)
        assert choice == torch._fused_sdp_choice(*parts, mask, dropout)


OUTSIDE = """
import torch
x = torch.eye({size}, device="hpu") * 2
(x + x).softmax(-1).to_dense()
torch.nn.functional.layer_norm(x @ x, ({size},))[x > 0] = 1
for _ in range(2):
    print(torch.linalg.eigvalsh(x).tolist())
"""


@pytest.mark.parametrize("size", [2, 3])
def test_operations_that_run_on_the_host_of_a_gaudi_are_named_or_refused(
    run: Callable[..., subprocess.CompletedProcess[str]], size: int
) -> None:
    variable = "GAUDI3_HPU_SIMULATOR_OPERATIONS"
    code = OUTSIDE.format(size=size)
    values = f"{[2.0] * size}\n" * 2
    silent, named = run(code), run(code, **{variable: "name"})
    assert (silent.stdout, named.stdout) == (values, values), named.stderr
    line = "gaudi3-hpu-simulator: aten::_linalg_eigh.eigenvalues runs on the host of a Gaudi\n"
    assert "host of a Gaudi" not in silent.stderr
    assert named.stderr.count("on the host of a Gaudi") == named.stderr.count(line) == 1
    refused = run(code, **{variable: "refuse"})
    assert refused.returncode == 1 and refused.stdout == ""
    assert "Habana's plugin has no kernel for aten::_linalg_eigh.eigenvalues, and a Gaudi would" in refused.stderr
    wrong = run(code, **{variable: "most"})
    assert f"{variable} is 'most', but it has to be one of all, name, refuse." in wrong.stderr


def test_a_small_model_trains_with_operations_of_a_gaudi_alone(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    code = (
        "import sys, torch; sys.path.insert(0, 'tests'); import shapes\n"
        "model = shapes.build('llama').to('hpu').train()\n"
        "print(len(shapes.train(model, torch.device('hpu'), steps=2)))"
    )
    result = run(code, GAUDI3_HPU_SIMULATOR_OPERATIONS="name")
    assert result.stdout == "2\n", result.stderr
    assert "on the host of a Gaudi" not in result.stderr
