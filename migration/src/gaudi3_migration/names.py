"""What optimum-habana 1.21.2 calls its things, and what follows each: the table of names.

Read in the released wheel, and each successor looked up in transformers 5.23.0, diffusers 0.42.1, accelerate 1.15.0,
trl 1.16.0 and sentence-transformers 6.2.0. The rewriting, the report and the page of the documentation are made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["class", "remove", "config", "snippet", "none"]
"""`class`: another class takes its place. `remove`: its call or assignment goes. `config`: the Gaudi configuration.
`snippet`: a few lines of Python take its place. `none`: nothing follows."""
Role = Literal["", "trainer", "arguments", "pipeline", "accelerator"]


@dataclass(frozen=True)
class Name:
    """One name of optimum-habana."""

    name: str
    kind: Kind
    successor: str = ""
    """Dotted, module and class."""
    do: str = ""
    """What a person has to know or do."""
    role: Role = ""
    changes: bool = False
    """Whether the program may give other results without it."""
    person: bool = False
    """Whether a person has to look at it, although it is rewritten."""


def _trainer(name: str, successor: str, do: str = "", person: bool = False) -> Name:
    text = do or "gaudi_config= goes (the second positional parameter too), tokenizer= is processing_class="
    return Name(name, "class", successor, text, "trainer", person=person)


def _arguments(name: str, successor: str, do: str = "", person: bool = False) -> Name:
    return Name(
        name, "class", successor, do or "its own fields and defaults: see the arguments", "arguments", person=person
    )


_TRL = "trl moved arguments between trainer and config since 0.9.6 (max_seq_length, dataset_text_field): compare both"
_SENTENCES = "sentence-transformers changed from 3.3.1 to 6.2: compare its arguments; NO_DUPLICATES draws other batches"
_VERSIONS = "read versions with importlib.metadata.version('habana-torch-plugin')"
_INFERENCE = "only for optimum-habana's own text generation: serve with vLLM, or call transformers' generate"
_PEFT = "it was assigned onto a class of peft: peft's own method stays"

NAMES: tuple[Name, ...] = (
    _trainer("GaudiTrainer", "transformers.Trainer"),
    _trainer("GaudiSeq2SeqTrainer", "transformers.Seq2SeqTrainer"),
    _arguments("GaudiTrainingArguments", "transformers.TrainingArguments"),
    _arguments("GaudiSeq2SeqTrainingArguments", "transformers.Seq2SeqTrainingArguments"),
    _trainer("SentenceTransformerGaudiTrainer", "sentence_transformers.SentenceTransformerTrainer", _SENTENCES, True),
    _arguments(
        "SentenceTransformerGaudiTrainingArguments",
        "sentence_transformers.SentenceTransformerTrainingArguments",
        _SENTENCES,
        True,
    ),
    _trainer("GaudiSFTTrainer", "trl.SFTTrainer", _TRL, True),
    _arguments("GaudiSFTConfig", "trl.SFTConfig", _TRL, True),
    _trainer("GaudiDPOTrainer", "trl.DPOTrainer", _TRL, True),
    _arguments("GaudiDPOConfig", "trl.DPOConfig", _TRL, True),
    _trainer("GaudiGRPOTrainer", "trl.GRPOTrainer", _TRL, True),
    _arguments("GaudiGRPOConfig", "trl.GRPOConfig", _TRL, True),
    _trainer("GaudiRewardTrainer", "trl.RewardTrainer", f"{_TRL}; it takes a RewardConfig", True),
    Name(
        "GaudiConfig",
        "config",
        do="use_torch_autocast is bf16=True, use_fused_adam is FusedAdamW by optimizer_cls_and_kwargs",
        changes=True,
    ),
    Name("GaudiGenerationConfig", "class", "transformers.GenerationConfig", "keys for static shapes have no successor"),
    Name("GaudiAccelerator", "class", "accelerate.Accelerator", "its own four arguments go", "accelerator"),
    Name("set_seed", "class", "transformers.set_seed", "the same generators, torch.hpu's among them"),
    Name("speed_metrics", "class", "transformers.trainer_utils.speed_metrics", "without the warm-up steps"),
    Name(
        "adapt_transformers_to_gaudi",
        "remove",
        do="transformers' own model classes run; types that it registered need the hub's own code",
        changes=True,
    ),
    Name("adapt_sentence_transformers_to_gaudi", "remove", do="the package's own classes run", changes=True),
    Name("check_optimum_habana_min_version", "remove", do="there is no version to check"),
    Name("check_habana_frameworks_min_version", "remove", do=_VERSIONS),
    Name("check_habana_frameworks_version", "remove", do=_VERSIONS),
    Name("check_synapse_version", "remove", do=_VERSIONS),
    Name("GaudiAdaloraLayerSVDLinearForward", "remove", do=_PEFT, changes=True),
    Name("GaudiAdaptedAttention_getattr", "remove", do=_PEFT, changes=True),
    Name("GaudiAdaptedAttentionPreAttnForward", "remove", do=_PEFT, changes=True),
    Name("GaudiAdaptedAttentionForward", "remove", do=_PEFT, changes=True),
    Name("GaudiPolyLayerLinearForward", "remove", do=_PEFT, changes=True),
    Name("GaudiBoftLinearForward", "remove", do=_PEFT, changes=True),
    Name("GaudiBoftConv2dForward", "remove", do=_PEFT, changes=True),
    Name("GaudiBoftGetDelta", "remove", do=_PEFT, changes=True),
    Name("gaudi_generate", "remove", do=_PEFT, changes=True),
    Name("gaudi_prepare_inputs_for_generation", "remove", do=_PEFT, changes=True),
    Name("get_hpu_memory_stats", "snippet", "torch.hpu.memory_stats", "the same three figures"),
    Name("to_gb_rounded", "snippet", do="a division"),
    Name("warn0", "snippet", "warnings.warn", "on the first process alone"),
    Name("HabanaGenerationTime", "snippet", "time.perf_counter", "the same methods"),
    Name(
        "HabanaProfile", "snippet", "torch.profiler.profile", "the same arguments; without active steps it does nothing"
    ),
    Name("_is_peft_model", "snippet", "peft.PeftModel", "isinstance"),
    Name("GaudiFluxAttnProcessor2_0", "none", do="diffusers' default processor: delete the assignment"),
    Name("GaudiJointAttnProcessor2_0", "none", do="diffusers' default processor: delete the assignment"),
    Name("get_habana_frameworks_version", "none", do=_VERSIONS),
    Name("get_driver_version", "none", do=_VERSIONS),
    Name("get_device_name", "none", do="torch.hpu.get_device_name() is the vendor's"),
    Name("to_device_dtype", "none", do="write tensor.to(device, dtype)"),
    Name("disable_kernel", "none", do="delete it"),
    Name("FP8ContextWrapper", "none", do="train in bf16"),
    Name("get_fp8_recipe", "none", do="train in bf16"),
    Name("DistributedRunner", "none", do="start by torchrun, accelerate launch, or the launcher of gaudi3.scale"),
    Name("all_reduce_gradients", "none", do="let DistributedDataParallel do it"),
    Name("parallel_state", "none", do="parallelism_config of TrainingArguments"),
    Name("TensorParallelStrategy", "none", do="tp_plan of from_pretrained"),
    Name("serialization", "none", do=_INFERENCE),
    Name("apply_zero3_leaf_promotion", "none", do="DeepSpeed's set_z3_leaf_modules"),
    Name("ScopedLinearAllReduce", "none", do=_INFERENCE),
    Name("model_on_meta", "none", do=_INFERENCE),
    Name("get_ds_injection_policy", "none", do=_INFERENCE),
    Name("write_checkpoints_json", "none", do=_INFERENCE),
    Name("get_repo_root", "none", do=_INFERENCE),
    Name("model_is_optimized", "none", do=_INFERENCE),
    Name("GaudiPPOTrainer", "none", do="trl 1.16.0 has none: use another method, or stay on trl below 0.17"),
    Name("GaudiPPOConfig", "none", do="trl 1.16.0 has none: use another method, or stay on trl below 0.17"),
    Name("GaudiDDPOTrainer", "none", do="trl 1.16.0 has none"),
    Name("GaudiDefaultDDPOStableDiffusionPipeline", "none", do="trl 1.16.0 has none"),
    Name("adapt_PreTrainedModelWrapper_to_gaudi", "none", do="trl 1.16.0 has none"),
    Name("RewardDataCollatorWithPadding", "none", do="trl's RewardTrainer makes its own"),
    Name("StableDiffusionXLPipeline_HPU", "none", do="diffusers' StableDiffusionXLPipeline"),
    Name("GaudiStableVideoDiffusionControlNetPipeline", "none", do="diffusers 0.42.1 has none"),
    Name("ControlNetSDVModel", "none", do="diffusers 0.42.1 has none"),
    Name("UNetSpatioTemporalConditionControlNetModel", "none", do="diffusers 0.42.1 has none"),
    Name("AutoPipelineForInpainting", "class", "diffusers.AutoPipelineForInpainting", role="pipeline"),
    Name("AutoPipelineForText2Image", "class", "diffusers.AutoPipelineForText2Image", role="pipeline"),
)
BY_NAME = {each.name: each for each in NAMES}

PIPELINES = (
    "CogVideoXPipeline", "CogVideoXImageToVideoPipeline", "StableDiffusionControlNetPipeline", "DDPMPipeline",
    "FluxPipeline", "FluxImg2ImgPipeline", "I2VGenXLPipeline", "DiffusionPipeline", "QwenImagePipeline",
    "StableDiffusionPipeline", "StableDiffusionDepth2ImgPipeline", "StableDiffusionImageVariationPipeline",
    "StableDiffusionImg2ImgPipeline", "StableDiffusionInpaintPipeline", "StableDiffusionInstructPix2PixPipeline",
    "StableDiffusionLDM3DPipeline", "StableDiffusionUpscalePipeline", "StableDiffusion3Pipeline",
    "StableDiffusionXLPipeline", "StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline",
    "StableVideoDiffusionPipeline", "TextToVideoSDPipeline", "WanPipeline", "WanImageToVideoPipeline",
    "DDIMScheduler", "EulerAncestralDiscreteScheduler", "EulerDiscreteScheduler", "FlowMatchEulerDiscreteScheduler",
)  # fmt: skip
"""Of diffusers, each of which optimum-habana has with Gaudi before it."""

PIPELINE_KEYWORDS = ("use_habana", "use_hpu_graphs", "gaudi_config", "bf16_full_eval", "sdp_on_bf16")
"""What optimum-habana's pipelines take and diffusers' do not."""
PIPELINE_CALL_KEYWORDS = (
    "throughput_warmup_steps", "profiling_warmup_steps", "profiling_steps",
)  # fmt: skip
"""What calls of optimum-habana's pipelines take and diffusers' do not."""
GENERATE_KEYWORDS = ("lazy_mode", "hpu_graphs", "iteration_times", "profiler", "ignore_eos")
"""What `generate` of optimum-habana's model classes takes and transformers' does not."""
ACCELERATOR_KEYWORDS = (
    "force_autocast",
    "distribution_strategy",
    "use_regional_compilation",
    "compiled_autograd_enable",
)

MOVED = {
    "transformers.AutoModelForVision2Seq": "transformers.AutoModelForImageTextToText",
    "transformers.deepspeed": "transformers.integrations.deepspeed",
    "transformers.utils.is_offline_mode": "huggingface_hub.is_offline_mode",
    "optimum.utils.logging": "transformers.utils.logging",
}
"""What programs import besides and has moved."""
GONE = {
    "transformers.utils.send_example_telemetry": "nothing is sent",
}
"""Calls of these go."""
REMOVED = dict.fromkeys(
    ("transformers.AdamW", "transformers.optimization.AdamW"),
    "torch.optim.AdamW(eps=1e-6, weight_decay=0.0) has its defaults; torch divides by the bias before it adds eps",
)
"""What transformers has no more, and what is near it."""
CONFIGURATION = {
    "is_decoder": "False",
    "prefix": "None",
    "tokenizer_class": "None",
}
"""What each model's configuration had in transformers 4, with its default; in 5 only where a class or file says it."""

TRAINER_MEMBERS = {
    "prediction_loop": "evaluation_loop",
    "_nested_gather": "accelerator.gather_for_metrics",
    "_gather_and_numpify": "accelerator.gather_for_metrics",
    "_rotate_checkpoints": "",
    "_sorted_checkpoints": "",
    "num_tokens": "",
    "torch_jit_model_eval": "",
    "_activate_neftune": "",
    "propagate_args_to_deepspeed": "",
    "htcore": "",
    "gaudi_config": "",
    "use_hpu_amp": "",
    "use_cpu_amp": "",
    "already_wrapped_for_hpu_graphs": "",
    "start_time_after_warmup": "",
    "log_evaluate_save_time": "",
    "compilation_time": "",
    "hpu_random": "",
}
"""Members of a trainer that transformers 5's has not, and what is near them."""


def lookup(qualified: str) -> Name | None:
    """The row of a qualified name, such as `optimum.habana.utils.set_seed`; None for a module."""
    if not qualified.startswith("optimum.habana."):
        return None
    module, _, last = qualified.rpartition(".")
    if any(part[:1].isupper() for part in module.split(".")):  # a member of a class
        return None
    if last in BY_NAME:
        return BY_NAME[last]
    plain = last.removeprefix("Gaudi")
    if last.startswith("Gaudi"):
        if plain in PIPELINES:
            role: Role = "" if plain.endswith("Scheduler") else "pipeline"
            return Name(last, "class", f"diffusers.{plain}", "use_habana=True is .to('hpu')" if role else "", role)
        models = "optimum.habana.transformers.models."
        if module.startswith(models) and ".modeling_" in module:
            return Name(
                last,
                "class",
                f"transformers.models.{module.removeprefix(models)}.{plain}",
                "the class without Gaudi in its name, where transformers has one",
                person=True,
            )
    if last[:1].isupper() or last.startswith(("gaudi_", "adapt_", "get_", "check_", "_")):
        return Name(last, "none", do="not known here: look into optimum-habana for what it did")
    return None
