"""The command line and the file of arguments that a program is started with."""

from __future__ import annotations

import json
import shlex

import pytest

from gaudi3_migration import migrated_command, migrated_json


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "python gaudi_spawn.py --world_size 8 --use_mpi run.py --use_habana --bf16",
            "torchrun --nproc_per_node 8 run.py --bf16",
        ),
        (
            "python ../gaudi_spawn.py --use_deepspeed --world_size=4 --master_port 3 run.py --deepspeed ds.json",
            "accelerate launch --use_deepspeed --num_processes 4 --main_process_port 3 run.py --deepspeed ds.json",
        ),
        ("python run.py --use_lazy_mode False --gaudi_config_name a/b x", "python run.py x"),
        ("python run.py --use_habana False --warmup_ratio 0.1", "python run.py --use_cpu --warmup_steps 0.1"),
        ("run.py --group_by_length --no_cuda", "run.py --train_sampling_strategy group_by_length --use_cpu"),
        ("run.py --overwrite_output_dir --throughput_warmup_steps 3", "run.py --overwrite_output_dir"),
        ("run.py --adafactor False --seed 3", "run.py --seed 3"),
    ],
)
def test_a_command_line(before: str, after: str) -> None:
    words, found = migrated_command(shlex.split(before), {"overwrite_output_dir"})
    assert shlex.join(words) == after
    assert found or before == after


def test_more_hosts_are_left_for_a_person() -> None:
    _words, found = migrated_command(shlex.split("gaudi_spawn.py --hostfile hosts run.py --fp8 True"), ())
    assert [each.what for each in found if each.certainty == "person"] == ["--hostfile hosts", "--fp8"]


def test_a_file_of_arguments() -> None:
    text, found = migrated_json(
        json.dumps({"seed": 3, "use_habana": True, "warmup_ratio": 0.1, "use_lazy_mode": False}), ()
    )
    assert json.loads(text) == {"seed": 3, "warmup_steps": 0.1}
    assert {each.what for each in found} == {"use_habana", "warmup_ratio", "use_lazy_mode"}


def test_files_of_deepspeed_and_fsdp_are_named() -> None:
    words, found = migrated_command(shlex.split("run.py --deepspeed ds.json --fsdp_config fsdp.json"), ())
    assert shlex.join(words) == "run.py --deepspeed ds.json --fsdp_config fsdp.json"
    assert [each.what for each in found] == ["--deepspeed", "--fsdp_config"]
    text, found = migrated_json(json.dumps({"fsdp_config": "f.json", "seed": 1}), ())
    assert json.loads(text) == {"fsdp_config": "f.json", "seed": 1} and "migrate it too" in found[0].then


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("GaudiLlamaDecoderLayer", "LlamaDecoderLayer"),
        (["GaudiLlamaDecoderLayer", "BertLayer"], ["LlamaDecoderLayer", "BertLayer"]),
        ("BertLayer", "BertLayer"),
    ],
)
@pytest.mark.parametrize("within", [False, True])
def test_a_file_of_fsdp_names_the_class_without_gaudi(given: object, made: object, within: bool) -> None:
    def file(value: object) -> dict[str, object]:
        keys = {"transformer_layer_cls_to_wrap": value, "fsdp_offload_params": False}
        return {"fsdp_config": keys} if within else keys

    text, found = migrated_json(json.dumps(file(given)), ())
    assert json.loads(text) == file(made)
    assert len(found) == (given != made)


def test_a_file_of_deepspeed_stays() -> None:
    text = '{"zero_optimization": {"stage": 3},  "train_batch_size": "auto"}'
    after, found = migrated_json(text, ())
    assert after == text and "accelerate reads" in found[0].then
