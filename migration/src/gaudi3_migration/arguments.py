"""The table of training arguments that optimum-habana 1.21.2 or transformers 4.55 has and transformers 5 has not.

Differences of the dataclasses' fields in transformers 4.55.4 and 5.23.0 and optimum-habana 1.21.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Where = Literal["optimum-habana", "transformers 4.55"]
Change = Literal["no", "rounding", "yes", "logs"]


@dataclass(frozen=True)
class Argument:
    """One field that is no more."""

    name: str
    default: str
    """As Python."""
    type: str
    successor: str = ""
    """Keyword that takes the value; `not:NAME` takes its opposite, `NAME=VALUE` is set where it was true."""
    do: str = "drop"
    where: Where = "optimum-habana"
    changes: Change = "no"
    """Whether results change once it is dropped with another value than its default."""
    person: bool = False
    """Whether a value other than the default needs a person."""
    read: str = ""
    """What a program reads in its place; without it the field becomes the program's own."""


def _old(name: str, type_: str, successor: str = "", do: str = "drop", default: str = "None", **more: bool) -> Argument:
    read = f"{{}}.{successor}" if successor.isidentifier() else ""
    return Argument(name, default, type_, successor, do, "transformers 4.55", "no", more.get("person", False), read)


_GRAPHS = "drop; torch_compile=True is what transformers has"
_COMPILE = "drop; torch_compile and torch._dynamo.config"
_PROFILE = "drop; a callback with torch.profiler"
_KERNEL = "only with gaudi_fused_sdpa"

ARGUMENTS: tuple[Argument, ...] = (
    Argument(
        "use_habana", "False", "bool", "not:use_cpu", "automatic: use_cpu=True is its opposite", read="not {}.use_cpu"
    ),
    Argument(
        "use_lazy_mode", "True", "bool", "", "drop; start with PT_HPU_LAZY_MODE=0", changes="rounding", read="False"
    ),
    Argument("gaudi_config_name", "None", "str", "", "drop; its keys: see gaudi_config.json", changes="yes"),
    Argument("use_hpu_graphs", "False", "bool", "", _GRAPHS, read="False"),
    Argument("use_hpu_graphs_for_inference", "False", "bool", "", _GRAPHS, read="False"),
    Argument("use_hpu_graphs_for_training", "False", "bool", "", _GRAPHS, read="False"),
    Argument("disable_tensor_cache_hpu_graphs", "False", "bool", "", _GRAPHS, read="False"),
    Argument("max_hpu_graphs", "None", "int", "", _GRAPHS, read="None"),
    Argument("use_compiled_autograd", "False", "bool", "", _COMPILE),
    Argument("compile_from_sec_iteration", "False", "bool", "", _COMPILE),
    Argument("use_regional_compilation", "False", "bool", "", "drop; accelerate's regional compilation"),
    Argument("use_zero3_leaf_promotion", "False", "bool", "", "drop; DeepSpeed's leaf modules"),
    Argument("compile_dynamic", "None", "bool", "", "drop; ACCELERATE_DYNAMO_USE_DYNAMIC"),
    Argument("cache_size_limit", "None", "int", "", _COMPILE),
    Argument("inline_inbuilt_nn_modules", "None", "bool", "", _COMPILE),
    Argument("allow_unspec_int_on_nn_module", "None", "bool", "", _COMPILE),
    Argument("distribution_strategy", '"ddp"', "str", "", "drop; DistributedDataParallel", changes="rounding"),
    Argument(
        "context_parallel_size",
        "1",
        "int",
        "",
        "parallelism_config: a batch means something else",
        changes="yes",
        person=True,
    ),
    Argument("fp8", "False", "bool", "", "no successor: train in bf16", changes="yes", person=True),
    Argument("minimize_memory", "False", "bool", "", "no successor: of fp8", person=True),
    Argument("flash_attention_fp8", "False", "bool", "", "no successor: of fp8", changes="yes", person=True),
    Argument(
        "attn_implementation",
        '"eager"',
        "str",
        "",
        "from_pretrained(attn_implementation=); gaudi_fused_sdpa is sdpa",
        changes="rounding",
    ),
    Argument("flash_attention_recompute", "False", "bool", "", f"drop; {_KERNEL}"),
    Argument("flash_attention_fast_softmax", "False", "bool", "", f"drop; {_KERNEL}", changes="rounding"),
    Argument(
        "flash_attention_causal_mask",
        "False",
        "bool",
        "",
        f"drop; {_KERNEL}, where it dropped the padding mask",
        changes="yes",
        person=True,
    ),
    Argument(
        "sdp_on_bf16", "False", "bool", "", "torch._C._set_math_sdp_allow_fp16_bf16_reduction(True)", changes="rounding"
    ),
    Argument(
        "pipelining_fwd_bwd",
        "False",
        "bool",
        "",
        "drop; with accumulation it also scaled the loss of models without loss arguments",
        changes="logs",
    ),
    Argument(
        "non_blocking_data_copy", "False", "bool", 'accelerator_config={"non_blocking": True}', "accelerator_config"
    ),
    Argument("throughput_warmup_steps", "0", "int", "", "drop", changes="logs"),
    Argument("adjust_throughput", "False", "bool", "", "drop", changes="logs"),
    Argument("profiling_warmup_steps", "0", "int", "", _PROFILE),
    Argument("profiling_steps", "0", "int", "", _PROFILE),
    Argument("profiling_warmup_steps_eval", "0", "int", "", _PROFILE),
    Argument("profiling_steps_eval", "0", "int", "", _PROFILE),
    Argument("profiling_record_shapes", "True", "bool", "", _PROFILE),
    Argument("profiling_with_stack", "False", "bool", "", _PROFILE),
    Argument(
        "ignore_eos",
        "True",
        "bool",
        "",
        "no successor: generation ends at the end-of-text token",
        changes="yes",
        person=True,
    ),
    _old("overwrite_output_dir", "bool", default="False"),
    Argument(
        "warmup_ratio",
        "0.0",
        "float",
        "warmup_steps",
        "warmup_steps: below 1 it is a share of all steps",
        "transformers 4.55",
        read="{}.warmup_steps",
    ),
    _old("group_by_length", "bool", 'train_sampling_strategy="group_by_length"', "train_sampling_strategy", "False"),
    _old("logging_dir", "str", "", "drop; the variable TENSORBOARD_LOGGING_DIR"),
    _old("save_safetensors", "bool", "", "drop; always", "True"),
    _old("no_cuda", "bool", "use_cpu", "use_cpu", "False"),
    _old("per_gpu_train_batch_size", "int", "per_device_train_batch_size", "per_device_train_batch_size"),
    _old("per_gpu_eval_batch_size", "int", "per_device_eval_batch_size", "per_device_eval_batch_size"),
    _old("adafactor", "bool", 'optim="adafactor"', "optim", "False"),
    _old("include_inputs_for_metrics", "bool", 'include_for_metrics=["inputs"]', "include_for_metrics", "False"),
    _old(
        "include_tokens_per_second", "bool", "include_num_input_tokens_seen", "include_num_input_tokens_seen", "False"
    ),
    _old("push_to_hub_model_id", "str", "hub_model_id", "hub_model_id"),
    _old("push_to_hub_organization", "str", "", "hub_model_id with the organisation before it", person=True),
    _old("push_to_hub_token", "str", "hub_token", "hub_token"),
    _old("fsdp_min_num_params", "int", "", "min_num_params in fsdp_config", "0", person=True),
    _old("fsdp_transformer_layer_cls_to_wrap", "str", "", "transformer_layer_cls_to_wrap in fsdp_config", person=True),
    _old("torchdynamo", "str", "torch_compile_backend", "torch_compile_backend"),
    Argument("half_precision_backend", '"hpu_amp"', "str", "", "drop", "transformers 4.55"),
    _old("fp16_backend", "str", default='"auto"'),
    _old("fp16_opt_level", "str", default='"O1"'),
    _old("use_ipex", "bool", default="False"),
    _old("jit_mode_eval", "bool", default="False"),
    _old("use_mps_device", "bool", default="False"),
    _old("tpu_num_cores", "int"),
    _old("tpu_metrics_debug", "bool", default="False"),
    _old("mp_parameters", "str", default='""'),
    _old("past_index", "int", default="-1"),
    _old("ray_scope", "str", default='"last"'),
    Argument("use_legacy_prediction_loop", "False", "bool", "", "drop", "transformers 4.55", read="False"),
    _old("_n_gpu", "int", default="1"),
)
BY_ARGUMENT = {each.name: each for each in ARGUMENTS}

DEFAULTS: dict[str, tuple[str, str, str]] = {
    "adam_epsilon": ("1e-6", "1e-8", "yes"),
    "optim": ('"adamw_torch"', '"adamw_torch_fused"', "rounding"),
    "logging_nan_inf_filter": ("False", "True", "logs"),
    "ddp_bucket_cap_mb": ("230", "None", "no"),
    "ddp_find_unused_parameters": ("False", "None", "no"),
}
"""Fields that are still there with another default: optimum-habana's, transformers 5's, and whether results change."""
OTHER_DEFAULTS = "report_to is 'none' instead of everything installed"

ADDED = (
    "activation_checkpointing", "activation_checkpointing_kwargs", "use_cache", "project", "trackio_space_id",
    "trackio_bucket_id", "trackio_static_space_id", "enable_jit_checkpoint", "parallelism_config",
    "dataloader_multiprocessing_context", "dataloader_in_order", "train_sampling_strategy", "ddp_static_graph",
)  # fmt: skip
"""Fields that transformers 5 adds, each of which may be a field of the program's own too."""
ADDED_DEFAULTS = {"use_cache": "False", "enable_jit_checkpoint": "False", "activation_checkpointing": "False"}

WRAPPED = ("transformer_layer_cls_to_wrap", "fsdp_transformer_layer_cls_to_wrap")
"""Keys of a configuration of FSDP that name classes."""
FILES = {
    "deepspeed": "it stays: DeepSpeed's own keys, which accelerate reads as before",
    "fsdp_config": "it stays, without Gaudi before a class in transformer_layer_cls_to_wrap: migrate it too",
}
"""Arguments that name a JSON file of another library."""

CONFIG_KEYS: dict[str, tuple[str, str]] = {
    "use_torch_autocast": ("bf16=True (the key alone turned bf16 on)", "yes"),
    "autocast_bf16_ops": ("a file named in PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST before torch starts", "yes"),
    "autocast_fp32_ops": ("a file named in PT_HPU_AUTOCAST_FP32_OPS_LIST before torch starts", "yes"),
    "use_dynamic_shapes": ("drop; of lazy mode alone", "no"),
    "use_fused_adam": ("optimizer_cls_and_kwargs=(FusedAdamW, ...): the formula differs from torch's AdamW", "yes"),
    "use_fused_clip_norm": ("drop; the trainer's own clipping has the same formula", "no"),
}
"""Keys of gaudi_config.json: what follows, and whether results change once it is dropped."""
CONFIG_SWITCHES = tuple(key for key in CONFIG_KEYS if key.startswith("use_"))
"""Those of them that are true or false."""

MODEL_SETTINGS = (
    "attn_softmax_bf16", "use_flash_attention", "flash_attention_recompute", "flash_attention_causal_mask",
    "flash_attention_fast_softmax", "flash_attention_fp8", "use_fused_rope", "logits_bf16", "reuse_cache",
    "bucket_size", "bucket_internal", "trim_logits", "limit_hpu_graphs", "reduce_recompile", "static_shapes",
)  # fmt: skip
"""What only optimum-habana's patched models read of a config, a generation config or a call."""
