"""How each public program with a Gaudi trainer class is started, and why one is not."""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 20
CAPTIONS = (
    "--dataset_name captions --image_column image --caption_column caption --max_seq_length 16"
    " --per_device_train_batch_size 8 --remove_unused_columns False"
)
COMMON = "--do_train --report_to none --seed 7 --learning_rate 1e-3 --output_dir OUT"
GAUDI = "--use_habana --use_lazy_mode False --gaudi_config_name gaudi"


@dataclass(frozen=True)
class Run:
    """How one program is started."""

    own: str
    scale: float = 1.0
    """What transformers 5 multiplies its losses with."""
    common: str = COMMON
    gaudi: str = GAUDI
    environment: tuple[tuple[str, str], ...] = ()
    first: str = ""
    """A folder of the old environment whose modules come first."""
    needs: tuple[str, ...] = ()
    """Modules that both environments have to have besides."""
    edits: tuple[tuple[str, str], ...] = ()
    """What is written otherwise before either of them runs: what no option changes."""

    def options_of(self, kind: str) -> str:
        """Of the original (old) and of the rewritten program (new), with OUT for the folder it writes to."""
        return " ".join([self.common, self.own, self.gaudi if kind == "old" else ""])


RUNS = {
    "text-classification/run_glue.py": Run(
        "--model_name_or_path bert-cls --train_file glue.csv --validation_file glue.csv --max_seq_length 32"
        " --per_device_train_batch_size 8"
    ),
    "language-modeling/run_clm.py": Run(
        "--model_name_or_path llama --train_file text.txt --block_size 32 --per_device_train_batch_size 4", 32 / 31
    ),
    "language-modeling/run_mlm.py": Run(
        "--model_name_or_path bert-mlm --train_file text.txt --max_seq_length 32 --per_device_train_batch_size 4"
    ),
    "question-answering/run_qa.py": Run(
        "--model_name_or_path bert-qa --train_file qa.json --max_seq_length 48 --doc_stride 8"
        " --per_device_train_batch_size 8"
    ),
    "translation/run_translation.py": Run(
        "--model_name_or_path t5 --train_file trans.json --source_lang en --target_lang de --max_source_length 16"
        " --max_target_length 16 --pad_to_max_length --per_device_train_batch_size 8"
    ),
    "audio-classification/run_audio_classification.py": Run(
        "--model_name_or_path wav2vec2 --dataset_name sounds --max_length_seconds 1 --per_device_train_batch_size 4"
        " --remove_unused_columns False",
        needs=("soundfile", "librosa"),
    ),
    "image-classification/run_image_classification.py": Run(
        "--model_name_or_path vit --train_dir pictures/train --validation_dir pictures/validation"
        " --per_device_train_batch_size 8 --remove_unused_columns False",
        needs=("torchvision",),
    ),
    "language-modeling/run_prompt_tuning_clm.py": Run(
        "--model_name_or_path llama --dataset_name regisss/raft --dataset_config_name default --max_seq_length 32"
        " --num_virtual_tokens 4 --per_device_train_batch_size 4",
        needs=("peft",),
    ),
    "question-answering/run_seq2seq_qa.py": Run(
        "--model_name_or_path t5 --train_file qa.json --max_seq_length 48 --max_answer_length 8"
        " --per_device_train_batch_size 8"
    ),
    "summarization/run_summarization.py": Run(
        "--model_name_or_path t5 --train_file summaries.json --text_column text --summary_column summary"
        " --max_source_length 24 --max_target_length 8 --pad_to_max_length --per_device_train_batch_size 8",
        needs=("nltk",),
    ),
    "contrastive-image-text/run_bridgetower.py": Run(
        # It trains on 60 % of the pictures: of so many as fill its batches, as optimum-habana fills the last one up.
        f"--model_name_or_path bridgetower --max_train_samples 32 {CAPTIONS}",
        needs=("torchvision",),
    ),
    "contrastive-image-text/run_clip.py": Run(f"--model_name_or_path dual {CAPTIONS}", needs=("torchvision",)),
    "language-modeling/run_lora_clm.py": Run(
        # Twenty words a line: no end of a text is among them, which the program has for padding and leaves out. A
        # gradient of adapters is so small that the loss's factor shows beside a larger epsilon.
        "--model_name_or_path llama --train_file text.txt --dataset_concatenation --chat_prompt True"
        " --max_seq_length 20 --adam_epsilon 1e-12 --max_steps 20 --per_device_train_batch_size 4",
        20 / 19,
        needs=("peft",),
    ),
    "protein-folding/run_sequence_classification.py": Run(
        "--model_name_or_path esm --tokenizer_name esm --dataset_name mila-intel/ProtST-BinaryLocalization"
        " --max_steps 20 --per_device_train_batch_size 4",
        gaudi="--use_habana --use_lazy_mode False",
        needs=("sklearn",),
    ),
    "speech-recognition/run_speech_recognition_ctc.py": Run(
        "--model_name_or_path tiny/wav2vec2 --tokenizer_name_or_path alphabet --dataset_name sounds"
        " --text_column_name text --mask_time_prob 0 --mask_feature_prob 0 --layerdrop 0"
        " --per_device_train_batch_size 4",
        needs=("soundfile", "librosa"),
    ),
    "speech-recognition/run_speech_recognition_seq2seq.py": Run(
        "--model_name_or_path whisper --dataset_name sounds --text_column_name text --freeze_feature_encoder False"
        " --apply_spec_augment False --max_steps 20 --remove_unused_columns False --per_device_train_batch_size 4",
        needs=("soundfile", "librosa"),
    ),
    "vision-language-modeling/run_lora_vlm.py": Run(
        "--model_name_or_path llava-hf/llava-tiny --per_device_train_batch_size 4 --save_steps 1000",
        14 / 13,
        common="--do_train --learning_rate 1e-3 --output_dir OUT",
        gaudi="--use_habana --gaudi_config_name gaudi",
        needs=("peft", "torchvision"),
        edits=(
            ('"--bf16", action="store_true", default=True', '"--bf16", action="store_true", default=False'),
            # A gradient of adapters is so small that the loss's factor shows beside a larger epsilon.
            ("ddp_bucket_cap_mb=25,", "ddp_bucket_cap_mb=25, adam_epsilon=1e-12,"),
        ),
    ),
    **{
        f"sentence-transformers-training/{name}.py": Run(
            f"encoder{options}",
            common="",
            gaudi="",
            environment=(("PT_HPU_LAZY_MODE", "1"),),  # as they ask for it themselves
            first="datasets-3.6",  # whose columns are lists: those of 4.0 take no numbers of numpy's
            needs=("sklearn", "sentence_transformers"),
        )
        for name, options in {
            "nli/training_nli": " --train_batch_size 8",
            "nli/training_nli_v2": "",
            "nli/training_nli_v3": "",
            "paraphrases/training_paraphrases": "",
            "sts/training_stsbenchmark": "",
            "sts/training_stsbenchmark_continue_training": "",
        }.items()
    },
}
HUB = "needs the hub"
MOVED = "arguments that trl has moved are left for a person"
REASONS = {
    "image-to-text/run_image2text_lora_finetune.py": "the original stops: its LLaVA takes hidden states for logits",
    "language-modeling/peft_poly_seq2seq_with_generate.py": HUB,
    "language-modeling/run_multitask_prompt_tuning.py": HUB,
    "trl/ddpo.py": f"{HUB}, and trl's old trainer",
    "trl/dpo.py": HUB,
    "trl/grpo.py": MOVED,
    "trl/ppo.py": f"{HUB}, and trl's old trainer",
    "trl/reward_modeling.py": HUB,
    "trl/sft.py": MOVED,
}
