"""The command of a replica, with what was measured to matter."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import command


def test_a_replica_on_a_cpu() -> None:
    engine = command.Engine("vllm-cpu", 18801, "llm", "float32", 4096, 16, arguments=["--seed", "1"], cache_gib=2)
    argv = command.serve_argv(engine, "/opt/v/bin/vllm")
    assert argv[:3] == ["/opt/v/bin/vllm", "serve", "{model}"]
    assert " ".join(argv[3:]) == (
        "--host 127.0.0.1 --port 18801 --served-model-name llm --dtype float32 --middleware "
        "gaudi_serving_first_token.FirstToken --max-model-len 4096 --max-num-seqs 16 --shutdown-timeout 300 "
        "--disable-uvicorn-access-log --seed 1"
    )
    found = command.environment_of(engine, "/var/lib/x")
    assert (found["HF_HUB_OFFLINE"], found["VLLM_NO_USAGE_STATS"], found["VLLM_CPU_KVCACHE_SPACE"]) == ("1", "1", "2")
    assert found["VLLM_CACHE_ROOT"] == "/var/lib/x/cache"
    # vLLM warns of every other name that begins so.
    known = {"VLLM_CACHE_ROOT", "VLLM_NO_USAGE_STATS", "VLLM_CPU_KVCACHE_SPACE"}
    assert {name for name in found if name.startswith("VLLM_")} == known


def test_a_version_that_cannot_drain_is_not_told_to() -> None:
    assert "--shutdown-timeout" not in command.serve_argv(command.Engine("vllm-gaudi", 1, "x", drain_seconds=0), "vllm")


def test_a_replica_on_cards_has_its_own() -> None:
    assert [command.cards_of(number, 4) for number in (1, 2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    engine = command.Engine("vllm-gaudi", 18802, "llm", cards=4)
    argv = command.serve_argv(engine, "vllm")
    assert argv[argv.index("--tensor-parallel-size") + 1] == "4"
    for name in ("docker", "podman"):
        container = command.Container(name, "vault/x:1", command.cards_of(2, 4), "990:990", "gaudi3-serving-2", ["44"])
        given = {"HF_HUB_OFFLINE": "1", "MY_TOKEN": "a-secret", "PROXY": "http://me:a-secret@host"}
        whole = command.container_argv(container, argv, given, "/var/lib/x")
        assert {"--env=MY_TOKEN", "--env=PROXY"} <= {*whole} and "a-secret" not in str(whole)
        assert whole[:2] == [f"/usr/bin/{name}", "run"]
        assert whole[whole.index("vault/x:1") + 1 :] == argv
        assert {"--init", "--user=990:990", "--group-add=44", "--cap-drop=all", "--env=HF_HUB_OFFLINE=1"} <= {*whole}
        assert "--volume={model}:{model}:ro" in whole
        assert ("--runtime=habana" in whole) == (name == "docker") != ("--device=/dev/accel" in whole)
        assert "--env=HABANA_VISIBLE_MODULES=4,5,6,7" in whole
        assert command.removal_argv(container)[-1] == "gaudi3-serving-2"
