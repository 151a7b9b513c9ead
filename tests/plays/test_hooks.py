"""A site's own steps before and after a phase, in the real playbooks."""

from __future__ import annotations

from pathlib import Path

from .cluster import Cluster

STEP = """
- name: Mark {name}
  ansible.builtin.debug:
    msg: "{{{{ inventory_hostname }}}}"
"""


def steps(cluster: Cluster, *names: str) -> Path:
    folder = cluster.folder / "hooks"
    folder.mkdir()
    for name in names:
        (folder / f"{name}.yml").write_text(STEP.format(name=name))
    return folder


def test_steps_are_done_on_all_hosts_of_the_phase_around_it(cluster: Cluster) -> None:
    cluster.gaudi(2, cards=1)
    folder = steps(cluster, "before_fabric", "after_fabric", "after_pytorch")
    run = cluster.play("site.yml", "--check", "--tags", "fabric", gaudi_hooks_dir=str(folder))
    assert run.returncode == 0, run.messages()
    done = [(host, name.rpartition(" : ")[2]) for host, name, _result in run.results()]
    (before, *_rest) = [number for number, (_host, name) in enumerate(done) if name == "Mark before_fabric"]
    (after, *_rest) = [number for number, (_host, name) in enumerate(done) if name == "Mark after_fabric"]
    written = max(number for number, (_host, name) in enumerate(done) if name.startswith("Write the collective"))
    assert before < written < after
    for name in ("before_fabric", "after_fabric"):
        assert {host for host, step in done if step == f"Mark {name}"} == {"gaudi-1", "gaudi-2"}
    assert not any(name == "Mark after_pytorch" for _host, name in done), "that phase is not part of the run"


def test_a_phase_that_runs_alone_has_them_too(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    folder = steps(cluster, "after_fabric")
    run = cluster.play("fabric.yml", "--check", gaudi_hooks_dir=str(folder))
    assert run.returncode == 0, run.messages()
    assert ("gaudi-1", "Mark after_fabric") in {(host, name) for host, name, _result in run.results()}


def test_a_misspelt_step_is_refused_before_a_host_is_asked(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    folder = steps(cluster, "before_driver")
    run = cluster.play("site.yml", "--check", gaudi_hooks_dir=str(folder))
    assert run.returncode != 0
    (message,) = run.messages()
    assert message.startswith(f"{folder}/before_driver.yml is a step of no phase: name it before_drivers.yml")
    assert {name for _host, name, _result in run.results()} == {"Refuse what cannot be meant"}


def test_a_folder_that_follows_from_another_variable_is_found(cluster: Cluster) -> None:
    cluster.gaudi(1, cards=1)
    folder = steps(cluster, "before_fabric")
    cluster.all |= {"mine": str(cluster.folder), "gaudi_hooks_dir": "{{ mine }}/hooks"}
    run = cluster.play("fabric.yml", "--check", "--tags", "fabric")
    assert run.returncode == 0, run.messages()
    assert [host for host, name, _result in run.results() if name == "Mark before_fabric"] == ["gaudi-1"], folder


def test_steps_that_would_not_be_done_are_refused_before_a_host_is_asked(cluster: Cluster) -> None:
    """A folder of some hosts alone, one that nothing defines, a link to nothing, and what is no list of tasks."""
    cluster.gaudi(1, cards=1)
    cluster.add("mon", "monitoring", cards=0, system="debian")
    folder = steps(cluster, "before_firewall")
    file = folder / "before_firewall.yml"

    def said() -> str:
        run = cluster.play("site.yml", "--check", "--tags", "firewall")
        assert run.returncode != 0
        assert {name for _host, name, _result in run.results()} == {"Refuse what cannot be meant"}
        return str(*run.messages())

    cluster.variables["mon"]["gaudi_hooks_dir"] = str(folder)
    assert said().startswith(f"gaudi_hooks_dir is not set on gaudi-1 and {folder} on mon: give all hosts the same")
    cluster.all["gaudi_hooks_dir"] = "{{ nobody.has_this }}"
    del cluster.variables["mon"]["gaudi_hooks_dir"]
    assert "cannot be evaluated on gaudi-1, mon before hosts are asked" in said()
    cluster.all["gaudi_hooks_dir"] = str(folder)
    file.write_text("- hosts: all\n  tasks: []\n")
    assert said() == f"{file} has a play in it: give its tasks alone, as in a role's tasks/main.yml."
    file.write_text("- name: [\n")
    assert said().startswith(f"{file} cannot be read (")
    file.unlink()
    file.symlink_to("nowhere")
    assert said().startswith(f"{file} is no file, so that its steps would not be done: ")
