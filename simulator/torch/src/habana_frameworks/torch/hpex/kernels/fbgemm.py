"""Table-batched embeddings of recommendation models: refused."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing

_INSTEAD = "use torch.nn.EmbeddingBag, or run on hardware"

bounds_check_indices = refusing("fbgemm.bounds_check_indices", _INSTEAD)
expand_into_jagged_permute = refusing("fbgemm.expand_into_jagged_permute", _INSTEAD)
split_embedding_codegen_lookup_adagrad_function_hpu = refusing(
    "fbgemm.split_embedding_codegen_lookup_adagrad_function_hpu", _INSTEAD
)
split_embedding_codegen_lookup_sgd_function_hpu = refusing(
    "fbgemm.split_embedding_codegen_lookup_sgd_function_hpu", _INSTEAD
)
split_permute_cat = refusing("fbgemm.split_permute_cat", _INSTEAD)
