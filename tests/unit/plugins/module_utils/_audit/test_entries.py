"""What is recorded of a task's answer: each change with before and after, and no secret."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._audit import entries


def test_a_change_has_before_and_after_of_its_diff() -> None:
    answer = {"changed": True, "diff": [{"before": "a\n", "after": "b\n"}, {"prepared": "+ mode"}]}
    assert list(entries.results(answer, "ok")) == [{"result": "changed", "before": "a\n", "after": "b\n\n+ mode"}]
    assert list(entries.results({"changed": True}, "ok")) == [{"result": "changed", "before": None, "after": None}]
    assert list(entries.results({"changed": False, "diff": {"before": "", "after": ""}}, "ok")) == []


def test_each_item_of_a_loop_is_one_change() -> None:
    items = [
        {"changed": True, "item": "a"},
        {"changed": False, "item": "b"},
        {"failed": True, "item": "c", "msg": "no"},
    ]
    found = list(entries.results({"changed": True, "results": items}, "failed"))
    assert [(each["item"], each["result"]) for each in found] == [("a", "changed"), ("c", "failed")]
    assert found[1]["said"] == "no"


def test_what_failed_or_did_not_answer_may_have_changed_something() -> None:
    (found,) = entries.results({"unreachable": True, "msg": "timed out"}, "unreachable")
    assert found == {"result": "unreachable", "said": "timed out", "before": None, "after": None}


def test_secrets_stay_out() -> None:
    hidden = {
        "censored": "the output has been hidden",
        "changed": True,
        "diff": {"before": "s3cret", "after": "s3cret2"},
    }
    assert list(entries.results(hidden, "ok")) == [{"result": "changed", "hidden": "hidden (no_log)"}]
    items = [{**hidden, "item": "s3cret"}]
    assert list(entries.results({"results": items}, "ok")) == [{"result": "changed", "hidden": "hidden (no_log)"}]
    text = 'user = me\nadmin_password: s3cret\nurl = https://me:s3cret@host/\n  "api_token": "s3cret"\nport: 1'
    shown = entries.shown(text)
    assert "s3cret" not in shown and shown.splitlines()[0] == "user = me" and shown.splitlines()[4] == "port: 1"
    assert entries.shown({"password": "s3cret", "size": 8}) == '{"password": "hidden", "size": 8}'


def test_long_texts_are_cut_and_say_so() -> None:
    assert entries.shown("x" * 5000).endswith("x... (1000 characters more)")


def test_what_is_ansibles_own_memory_is_no_change() -> None:
    recorded = ["ansible.builtin.copy", "gaudi3.scale.gaudi_train", "ansible.builtin.add_host", "assert"]
    assert [entries.is_recorded(each) for each in recorded] == [True, True, False, False]


def test_who_and_where() -> None:
    found = entries.who({"SUDO_USER": "ann"}, "root")
    assert (found["sudo_user"], found["become_user"]) == ("ann", "root") and "sudo_user" not in entries.who({})
    assert entries.default_path({"GAUDI3_AUDIT": "/a/b.jsonl", "GAUDI3_DEPLOYMENTS": "/d"}) == "/a/b.jsonl"
    assert entries.default_path({"GAUDI3_DEPLOYMENTS": "/d"}) == "/d/audit.jsonl"
    assert entries.default_path({"XDG_STATE_HOME": "/s"}) == "/s/gaudi3-deploy/audit.jsonl"
