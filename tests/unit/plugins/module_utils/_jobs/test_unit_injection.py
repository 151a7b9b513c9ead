"""No parameter of a job adds a line to its unit, which systemd runs as root, or changes its configuration."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.config_file import config_text
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text

SPEC = JobSpec(name="demo", config={}, nodes=("gaudi-1",), head_address="10.0.0.1")
SHARE = NodeShare("/var/lib/gaudi3-scale/jobs/demo", address="10.0.0.1")
LINE = "ExecStartPre=+/bin/touch /root/owned"


def unit_of(spec: JobSpec, share: NodeShare) -> str:
    """The unit as the module makes it: the specification is checked first."""
    spec.check()
    return unit_text(spec, share)


@pytest.mark.parametrize(
    ("spec", "share"),
    [
        *[({"environment": {"A": f"1{end}{LINE}"}}, {}) for end in ("\n", "\r", "\0", "\x7f")],
        *[({"environment_files": (f"/etc/a.env{end}{LINE}",)}, {}) for end in ("\n", "\r", "\0", "\\")],
        *[({}, {"address": f"10.0.0.1{end}{LINE}"}) for end in ("\n", "\r", " ")],
        *[({}, {"directory": f"/srv/jobs{end}{LINE}/demo"}) for end in ("\n", "\r", "\0")],
        *[({"venv": f"/opt/venv{end}{LINE}"}, {}) for end in ("\n", "\r")],
        ({"name": f"demo\n{LINE}"}, {}),
        ({"user": f"root\n{LINE}"}, {}),
        ({"head_address": f"10.0.0.1\n{LINE}"}, {}),
        ({"environment": {f"A=1\n{LINE}\nB": "1"}}, {}),
        # A prefix of the first word gives root's rights, one of a path means another thing than a path.
        ({"venv": "+/opt/venv"}, {}),
        ({"environment_files": ("relative.env",)}, {}),
        ({}, {"directory": "relative/demo"}),
        ({}, {"directory": "/srv/jobs\\"}),
        ({"environment": {"A": "\udc80"}}, {}),
        *[({"command": ("/srv/a.py", f"1{end}{LINE}")}, {}) for end in ("\n", "\r", "\0", "\x7f")],
        ({"command": (f"/srv/a.py\n{LINE}",)}, {}),
        ({"command": ("/srv/a.py",), "chdir": f"/srv\n{LINE}"}, {}),
        ({"command": ("/srv/a.py",), "chdir": "srv"}, {}),
        ({"command": ("/srv/a.py",), "chdir": "/srv\\"}, {}),
    ],
)
def test_what_would_add_a_line_to_the_unit_is_refused(spec: dict[str, Any], share: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"(?s)^.*[:;] .*\.$") as caught:
        unit_of(replace(SPEC, **spec), replace(SHARE, **share))
    assert "\n" not in str(caught.value), "the sentence shows the character escaped"
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize("name", ["HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "db_password", "OPENAI_APIKEY"])
def test_a_secret_does_not_go_into_a_unit_that_everybody_reads(name: str) -> None:
    with pytest.raises(ValueError, match="environment_files") as caught:
        unit_of(replace(SPEC, environment={name: "hunter2"}), SHARE)
    assert str(caught.value) == (
        f"Environment variable {name!r} looks like a secret, and every user of the node can read a unit's environment: "
        "put it into a file with mode 0600 and name that in environment_files."
    )


def test_names_that_only_resemble_secrets_are_taken() -> None:
    names = ["TOKENIZERS_PARALLELISM", "HF_TOKEN_PATH", "MLFLOW_TRACKING_PASSWORD_FILE", "MONKEY", "PT_HPU_KEYS"]
    unit = unit_of(replace(SPEC, environment=dict.fromkeys(names, "1")), SHARE)
    assert all(f"{name}=1" in unit for name in names)


def test_special_characters_that_are_meant_stay() -> None:
    spec = replace(SPEC, environment={"A": "tab\there 50 %"}, environment_files=("/etc/50 %.env",))
    lines = unit_of(spec, replace(SHARE, directory="/srv/100%/demo")).splitlines()
    assert any(line.startswith('ExecStart=/usr/bin/env "A=tab\\there 50 %%" /') for line in lines)
    assert "EnvironmentFile=-/etc/50 %%.env" in lines
    assert "WorkingDirectory=/srv/100%%/demo" in lines


#: What such texts are made of: harmless letters, and all that ends a line or means something to systemd or YAML.
ALPHABET = [*"ab/.:-_ =%$\\\"'#;!+@~*?{}[]&|<>`,", *map(chr, range(33)), "\x7f", "\x80", "\x85", "\xa0", "ß", "\u2028",
            "\u2029", "\ufeff", "\ufffe", "\uffff", "\ud800", "\udfff", "\U0001f600", "\U0010ffff"]  # fmt: skip


def random_text(seeded: random.Random) -> str:
    return "".join(seeded.choices(ALPHABET, k=seeded.choice([0, 1, 2, 3, 8])))


@pytest.mark.parametrize("seed", range(20))
def test_the_unit_has_as_many_lines_as_one_of_harmless_values(seed: int) -> None:
    seeded = random.Random(seed)
    shape = {"environment": {"A": "1"}, "environment_files": ("/a",)}
    own = {"command": ("/srv/a.py",)}
    plains = {bool(more): unit_of(replace(SPEC, **shape, **more), SHARE) for more in ({}, own)}  # type: ignore[arg-type]
    accepted = 0
    for _round in range(150):
        one = random_text(seeded)
        fields: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({"environment": {"A": one}}, {}),
            ({"command": ("/srv/a.py", one)}, {}),
            ({"command": ("/" + one,)}, {}),
            ({"command": ("a.py",), "chdir": "/" + one}, {}),
            ({"environment": {one: "1"}}, {}),
            ({"environment_files": ("/" + one,)}, {}),
            ({"environment_files": (one,)}, {}),
            ({"venv": "/" + one}, {}),
            ({"venv": one}, {}),
            ({"name": one}, {}),
            ({"user": one}, {}),
            ({"head_address": one}, {}),
            ({}, {"address": one}),
            ({}, {"directory": "/" + one}),
        ]
        spec, share = seeded.choice(fields)
        try:
            unit = unit_of(replace(SPEC, **{**shape, **spec}), replace(SHARE, **share))
        except ValueError:
            continue
        accepted += 1
        plain = plains["command" in spec]
        # The ends of a line as systemd knows them, not as str.splitlines() does.
        assert "\r" not in unit and "\0" not in unit
        assert len(unit.split("\n")) == len(plain.split("\n"))
        assert not any(line.endswith("\\") for line in unit.split("\n"))
        assert [line.split("=")[0] for line in unit.split("\n")] == [line.split("=")[0] for line in plain.split("\n")]
    assert accepted > 10


@pytest.mark.parametrize("seed", range(20))
def test_the_configuration_reads_back_equal_whatever_its_texts(seed: int) -> None:
    seeded = random.Random(seed)
    accepted = 0
    for _round in range(40):
        config = {
            "text": random_text(seeded),
            "key " + random_text(seeded): {
                random_text(seeded) + "x": [random_text(seeded), {"y": random_text(seeded)}]
            },
        }
        try:
            text = config_text(replace(SPEC, config=config), SHARE)
        except ValueError as error:
            assert not isinstance(error, UnicodeError)
            continue
        accepted += 1
        text.encode("utf-8")
        for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            assert yaml.load(text, Loader=loader) == {**config, "output_dir": SHARE.directory}
    assert accepted > 10


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e16, 1e-7, -0.0, 10**20])
def test_numbers_read_back_equal(value: float) -> None:
    config = {"number": value}
    assert yaml.safe_load(config_text(replace(SPEC, config=config), SHARE))["number"] == value


def test_a_text_that_is_no_unicode_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^The configuration holds a text which is not Unicode \(.*\): .*\.$"):
        config_text(replace(SPEC, config={"a": ["\udc80"]}), SHARE)


@pytest.mark.parametrize("seconds", [0, -1, 86401])
def test_a_job_gets_at_least_one_second_and_at_most_a_day_to_stop(seconds: int) -> None:
    with pytest.raises(ValueError, match=rf"^stop_timeout is {seconds}, but must be from 1 to 86400\.$"):
        replace(SPEC, stop_timeout=seconds).check()
    replace(SPEC, stop_timeout=1).check()
