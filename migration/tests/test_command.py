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
