"""Holes of a mirror's packages: the right verdict for every set, from made advisories with the shapes of real ones."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Deploy
from gaudi3_deploy.collection._mirror import LOCK
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.holes import advisories, frozen, ledger, order, vex
from gaudi3_deploy.mirror.sealed import Kept, Lock

RELEASE = "1.23.0-695"
FIXED, ABSENT, OPEN, REACHES = "vulnerable_code_not_present", "absent", "under_investigation", "affected"
UNREACHED = "vulnerable_code_not_in_execute_path"
#: Two sets of a mirror: wheels, a package of each distribution, and the vendor's tarball, which counts as a torch.
SETS = {
    "old": ["lightning-2.6.5", "numpy-2.0.0rc1", "Pillow-9.0.0", "torchmetrics-1.8.0+cpu", "rich-15.0.0"],
    "new": ["lightning-2.6.6", "numpy-2.1.0", "pillow-10.0.0", "torchmetrics-1.8.1", "aiohttp-3.9.0"],
}
SYSTEM = {
    "old": ["pool/openssl_1%3a3.0.2-0ubuntu1~22.04_amd64.deb", "rhel/zlib-1.2.11-40.el9.x86_64.rpm"],
    "new": ["pool/openssl_1%3a3.0.2-0ubuntu1_amd64.deb", "rhel/zlib-1.2.11-41.el9_1.x86_64.rpm"],
}


def osv(name: str, package: str, *events: str, ecosystem: str = "PyPI", **more: Any) -> dict[str, Any]:
    """A made advisory: its events as "introduced 0"."""
    ranges = [{"type": "ECOSYSTEM", "events": [dict([event.split(" ")]) for event in events]}] if events else []
    affected = {"package": {"ecosystem": ecosystem, "name": package}, "ranges": ranges}
    affected["versions"] = more.pop("versions", [])
    return {"id": name, "summary": f"made: {name}", "affected": [affected], **more}


#: Each with its verdict on the old set and on the new one.
MADE: list[tuple[dict[str, Any], str, str]] = [
    (osv("MADE-01", "numpy", "introduced 0", "fixed 2.0.0"), OPEN, FIXED),  # a candidate comes before its release
    (osv("MADE-02", "numpy", "introduced 2.0.0", "fixed 2.2"), FIXED, OPEN),
    (osv("MADE-03", "numpy", "introduced 0", "last_affected 2.1.0"), OPEN, OPEN),
    (osv("MADE-04", "numpy", "introduced 0", "last_affected 2.0.0"), OPEN, FIXED),
    (osv("MADE-05", "numpy", "introduced 0"), OPEN, OPEN),
    (osv("MADE-06", "NumPy", "introduced 0", "fixed 1.26", "introduced 2.0.0rc1", "fixed 2.0.1"), OPEN, FIXED),
    (osv("MADE-07", "numpy", "fixed 2.0.1", "introduced 2.0.0rc1"), OPEN, FIXED),  # in any order
    (osv("MADE-08", "numpy", versions=["1.0", "2.1"]), FIXED, OPEN),  # 2.1 is 2.1.0
    (osv("MADE-09", "numpy", versions=["2004d", "2.0.0rc1"]), OPEN, FIXED),
    (osv("MADE-10", "numpy"), OPEN, OPEN),  # nothing to compare with
    (osv("MADE-11", "numpy", "introduced 0", "fixed odd"), OPEN, OPEN),
    (osv("MADE-12", "pillow", "introduced 0", "fixed 10.0.0"), OPEN, FIXED),
    (osv("MADE-13", "PILLOW", "introduced 9.0.0", "limit 10"), OPEN, FIXED),
    (osv("MADE-14", "torchmetrics", "introduced 0", "last_affected 1.8.0"), OPEN, FIXED),  # with a local part, too
    (osv("MADE-15", "torchmetrics", versions=["1.8.0"]), OPEN, FIXED),
    (osv("MADE-16", "rich", "introduced 0"), OPEN, ABSENT),
    (osv("MADE-17", "aiohttp", "introduced 0", "fixed 3.9.0"), ABSENT, FIXED),
    (osv("MADE-18", "aiohttp", "introduced 3.9.0"), ABSENT, OPEN),
    (osv("MADE-19", "rich", "introduced 0", withdrawn="2026-01-01T00:00:00Z"), ABSENT, ABSENT),
    (osv("MADE-20", "rich", "introduced 0", ecosystem="npm"), ABSENT, ABSENT),
    (osv("MADE-21", "torch", "introduced 0", "fixed 2.10.0"), OPEN, OPEN),  # the vendor's, of 2.9.0
    (osv("MADE-22", "torch", "introduced 0", "fixed 2.8.0"), FIXED, FIXED),
    (osv("MAL-MADE-23", "rich", versions=["15.0.0"]), REACHES, ABSENT),
    (osv("MAL-MADE-24", "aiohttp", versions=["3.9.9"]), ABSENT, FIXED),
    (osv("MADE-25", "openssl", "introduced 0", "fixed 1:3.0.2-0ubuntu1", ecosystem="Ubuntu:22.04:LTS"), OPEN, FIXED),
    (osv("MADE-26", "openssl", "introduced 0", "fixed 3.1", ecosystem="Debian:12"), FIXED, FIXED),  # its epoch is 0
    (osv("MADE-27", "zlib", "introduced 0", "fixed 0:1.2.11-41.el9", ecosystem="Red Hat:9"), OPEN, FIXED),
    (osv("MADE-28", "zlib", "introduced 0", ecosystem="PyPI"), ABSENT, ABSENT),
    # The shape of a real one, whose fixed release does not exist, and of the advisory on the poisoned releases.
    (
        osv("GHSA-qqmf-gpg7-g8gw", "lightning", "introduced 0", "fixed 2022.6.15", aliases=["CVE-2026-58659"]),
        UNREACHED,
        FIXED,
    ),
    (osv("GHSA-w37p-236h-pfx3", "lightning", versions=["2.6.2", "2.6.3"]), FIXED, FIXED),
]


def lock(name: str, *more: str) -> Lock:
    """A mirror's lock with the files of a set."""
    torch = "artifactory/gaudi-pt-modules/1.23.0/695/pytorch/ubuntu2204/pytorch_modules-v2.9.0_1.23.0_695.tgz"
    wheels = [f"pypi/wheels/{each}-py3-none-any.whl" for each in (*SETS[name], *more)]
    return Lock(RELEASE, {path: Kept(path, "0" * 64, 1, "made") for path in (*wheels, *SYSTEM[name], torch)})


def judged(sealed: Lock) -> list[ledger.Verdict]:
    """The verdicts on the packages of a lock."""
    known = [advisories._advisory(record) for record, _old, _new in MADE]
    return ledger.verdicts_on(known, frozen.packages(sealed), ledger.rows(ledger.OURS))


@pytest.mark.parametrize("name", SETS)
def test_thirty_advisories_have_the_right_verdict_on_every_set(name: str) -> None:
    found = judged(lock(name))
    said = {each.advisory.id: each.justification or each.status for each in found}
    assert len(MADE) == 30
    assert {record["id"]: said.get(record["id"], ABSENT) for record, _old, _new in MADE} == {
        record["id"]: new if name == "new" else old for record, old, new in MADE
    }
    assert {each.poisoned for each in found if each.status == "affected"} <= {True}


@pytest.mark.parametrize(
    ("events", "version", "reached"),
    [
        (["introduced 1.0", "fixed 1.5", "introduced 1.5", "fixed 1.6"], "1.5", True),
        (["introduced 1.0", "introduced 1.5", "fixed 1.5", "fixed 1.6"], "1.5", True),
        (["fixed 1.6", "introduced 1.5", "fixed 1.5", "introduced 1.0"], "1.6", False),
        (["fixed 1.5", "introduced 1.5"], "1.5", False),  # nothing at all
        (["last_affected 1.5", "introduced 1.5"], "1.5", True),
        (["last_affected 1.5", "introduced 1.5"], "1.6", False),
        (["introduced 0", "limit *"], "1.5", True),
    ],
)
def test_a_version_that_is_the_bound_of_two_parts(events: list[str], version: str, reached: bool) -> None:
    """Whatever the order in which a record lists them."""
    (about,) = advisories._advisory(osv("MADE", "numpy", *events)).affected
    assert about.reaches(version) is reached


def test_ubuntus_packages_are_judged_by_their_sources_and_for_their_release(tmp_path: Path) -> None:
    """Advisories name packages of sources; a release's fix says nothing of another release's package."""
    index = (
        "Package: libc6\nSource: glibc\nVersion: 2.35-0ubuntu3.8\nFilename: pool/g/libc6_2.35-0ubuntu3.8_amd64.deb\n\n"
        "Package: libperl\nSource: perl (5.34.0-3ubuntu1.3)\nVersion: 9\nFilename: pool/p/libperl_9_amd64.deb\n\n"
        "Package: glibc-doc\nVersion: 1\nFilename: pool/g/glibc-doc_1_all.deb\n"
    )
    listed = "ubuntu/dists/jammy-updates/main/binary-amd64/Packages.gz"
    (tmp_path / listed).parent.mkdir(parents=True)
    (tmp_path / listed).write_bytes(gzip.compress(index.encode()))
    pool = ("g/libc6_2.35-0ubuntu3.8_amd64.deb", "p/libperl_9_amd64.deb", "g/glibc-doc_1_all.deb")
    paths = [listed, *(f"ubuntu/pool/{name}" for name in pool)]
    packages = frozen.packages(Lock(RELEASE, {path: Kept(path, "0" * 64, 1, "made") for path in paths}), tmp_path)
    jammy, noble = "Ubuntu:22.04:LTS", "Ubuntu:24.04:LTS"
    made = [
        osv("MADE-1", "glibc", "introduced 0", "fixed 2.35-0ubuntu3.9", ecosystem=jammy),
        osv("MADE-2", "glibc", "introduced 0", "fixed 2.35-0ubuntu3.8", ecosystem=jammy),
        osv("MADE-3", "glibc", "introduced 0", "fixed 2.39-0ubuntu8", ecosystem=noble),
        osv("MADE-4", "glibc", "introduced 0", ecosystem="Debian:12"),
        osv("MADE-5", "libc6", "introduced 0", ecosystem=jammy),
        osv("MADE-6", "perl", "introduced 0", "fixed 5.34.0-3ubuntu1.4", ecosystem="Ubuntu:Pro:22.04:LTS"),
    ]
    found = ledger.verdicts_on([advisories._advisory(each) for each in made], packages, [])
    assert {(each.advisory.id, each.package.name): each.justification or each.status for each in found} == {
        ("MADE-1", "libc6"): OPEN, ("MADE-2", "libc6"): FIXED, ("MADE-6", "libperl"): OPEN,
    }  # fmt: skip
    (tmp_path / listed).write_bytes(b"odd")
    with pytest.raises(UsageError, match=r"Packages\.gz cannot be read \(.*\): verify the mirror\.$"):
        frozen.packages(Lock(RELEASE, {listed: Kept(listed, "0" * 64, 1, "made")}), tmp_path)


def test_a_poisoned_release_is_named_as_such() -> None:
    found = judged(lock("new", "lightning-2.6.3"))
    (verdict,) = [each for each in found if each.status == "affected"]
    assert (verdict.advisory.id, verdict.package.version, verdict.poisoned) == ("GHSA-w37p-236h-pfx3", "2.6.3", True)
    assert verdict.statement.startswith("It is lightning 2.6.3, which steals credentials as soon as it is imported")


def test_the_ledger_is_true_of_the_trainer() -> None:
    """What it says is never called is never called, and each row has its source and day."""
    files = (ROOT / "trainer/src").rglob("*.py")
    assert [path for path in files if "load_from_checkpoint(" in path.read_text()] == []
    for row in ledger.rows(ledger.OURS):
        assert row.source.startswith("https://") and row.date >= "2026-01-01" and row.status == "not_affected"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"status": "fine"}, "status of X is 'fine': give not_affected or affected"),
        ({"justification": "luck"}, "justification of X is 'luck': give one of component_not_present, "),
        ({"status": "affected", "justification": ""}, "X has no action"),
        ({"source": ""}, "X lacks one of statement, source and date"),
        ({"versions": "newer"}, "versions of X: Invalid specifier"),
        ({"advisory": None}, "advisory"),
        ({"package": ["a"]}, "X has 'package', and advisory, packages, versions, status, "),
        ({"packages": "a"}, "packages of X is 'a': give a list of names"),
    ],
)
def test_a_ledger_that_is_not_right(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    right = {"advisory": "X", "status": "not_affected", "justification": UNREACHED, "statement": "a", "source": "b"}
    given = {key: each for key, each in {**right, "date": "2026-01-01", **row}.items() if each is not None}
    (tmp_path / "mine.yml").write_text(json.dumps([given]))
    with pytest.raises(UsageError, match=r"mine\.yml is no ledger of holes \(") as caught:
        ledger.rows(tmp_path / "mine.yml")
    assert said in str(caught.value)


def test_holes_of_a_mirror_offline_as_a_table_and_as_vex(deploy: Deploy, tmp_path: Path) -> None:
    mirror = deploy.folder / "mirror"
    mirror.mkdir()
    (mirror / LOCK).write_text(lock("new").text())
    with zipfile.ZipFile(deploy.folder / "all.zip", "w") as archive:
        for record, _old, _new in MADE:
            archive.writestr(f"{record['id']}.json", json.dumps(record))
    files = ("--openvex", "open.json", "--cyclonedx", "cyclone.json")
    said = deploy.run("mirror", "holes", "mirror", "all.zip", *files, code=1).splitlines()
    assert said[-1] == "8 packages of 1.23.0-695; advisories: 30, verdicts: 25, reaching the use: 0, undecided: 8"
    (line,) = [each for each in said if each.startswith("GHSA-qqmf")]
    assert line.startswith(
        "GHSA-qqmf-gpg7-g8gw lightning 2.6.6: not_affected (vulnerable_code_not_present). The hole is"
    )
    first = json.loads((deploy.folder / "open.json").read_text())
    assert first["@context"] == "https://openvex.dev/ns/v0.2.0" and len(first["statements"]) == 25
    for each in first["statements"]:
        assert ("justification" in each) == (each["status"] == "not_affected")
        assert ("action_statement" in each) == (each["status"] == "affected")
        ((product,),) = [each["products"]]
        assert (
            product["@id"] == "pkg:generic/gaudi3-mirror@1.23.0-695"
            and product["subcomponents"][0]["@id"][:4] == "pkg:"
        )
    second = json.loads((deploy.folder / "cyclone.json").read_text())
    refs = {each["bom-ref"] for each in second["components"]}
    assert all(each["affects"][0]["ref"] in refs for each in second["vulnerabilities"])
    states = {each["analysis"]["state"] for each in second["vulnerabilities"]}
    assert (second["specVersion"], states) == ("1.6", {"not_affected", "in_triage"})

    # What the owner decides comes first, and then none is left.
    mine = [
        {"advisory": record["id"], "status": "not_affected", "justification": "inline_mitigations_already_exist",
         "statement": "Behind our proxy.", "source": "https://wiki.example/1", "date": "2026-11-29"}
        for record, _old, new in MADE if new == OPEN
    ]  # fmt: skip
    (deploy.folder / "mine.yml").write_text(json.dumps(mine))
    said = deploy.run("mirror", "holes", "mirror", "all.zip", "--ledger", "mine.yml").splitlines()
    assert said[-1].endswith("verdicts: 25, reaching the use: 0, undecided: 0")
    told = json.loads(deploy.run("mirror", "holes", "mirror", "all.zip", "--ledger", "mine.yml", "--json"))
    assert (told["packages"], told["poisoned"], len(told["verdicts"])) == (8, [], 25)


def test_what_a_terminal_would_act_on_is_shown_as_an_escape(deploy: Deploy) -> None:
    (deploy.folder / "mirror").mkdir()
    (deploy.folder / "mirror" / LOCK).write_text(lock("new").text())
    (deploy.folder / "odd.json").write_text(json.dumps(osv("\x1b[2J\nX", "aiohttp", "introduced 3.9.0")))
    said = deploy.run("mirror", "holes", "mirror", "odd.json", code=1)
    assert said.splitlines()[0].startswith(r"\x1b[2J\nX aiohttp 3.9.0: under_investigation.")
    assert len(said.splitlines()) == 2 and "\x1b" not in said
    mine = [{"advisory": "a\x1b[2J", "status": "fixed"}]
    (deploy.folder / "mine.yml").write_text(json.dumps(mine))
    said = deploy.run("mirror", "holes", "mirror", "odd.json", "--ledger", "mine.yml", code=2)
    assert r"status of a\x1b[2J is 'fixed': give not_affected or affected" in said and "\x1b" not in said


def test_a_poisoned_wheel_in_a_mirror_is_refused_by_name(deploy: Deploy) -> None:
    mirror = deploy.folder / "mirror"
    path = "pypi/wheels/lightning-2.6.3-py3-none-any.whl"
    (mirror / path).parent.mkdir(parents=True)
    (mirror / path).write_bytes(b"bad")
    kept = Kept(path, hashlib.sha256(b"bad").hexdigest(), 3, "x")
    (mirror / LOCK).write_text(Lock(RELEASE, {path: kept}).text())
    why = "is lightning 2.6.3, which steals credentials as soon as it is imported (GHSA-w37p-236h-pfx3, 2026-04-30)"
    assert deploy.run("mirror", "verify", "mirror", code=1).splitlines()[0] == f"{path}: {why}"
    (deploy.folder / "none.json").write_text("[]")
    assert deploy.run("mirror", "holes", "mirror", "none.json", code=1).splitlines()[0] == f"{path}: {why}"
    said = deploy.run("mirror", "holes", "mirror", "none.json", "--openvex", "x", code=1)
    assert "OpenVEX has no document without statements" in said and not (deploy.folder / "x").exists()


def test_of_two_records_of_one_id_the_one_that_was_changed_last_counts(tmp_path: Path) -> None:
    """Whichever file it lies in: a folder that one adds to has older ones, too."""
    for number, day in enumerate(("2026-01-02", "2026-03-01", "2025-12-31")):
        record = {"id": "X", "modified": f"{day}T00:00:00Z", "summary": day}
        (tmp_path / f"{number}.json").write_text(json.dumps(record))
    assert [each.summary for each in advisories.read([tmp_path])] == ["2026-03-01"]


def test_a_decision_on_a_hole_counts_for_a_distribution_s_record_of_it(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps({"id": "UBUNTU-CVE-2026-1", "upstream": ["CVE-2026-1"]}))
    (tmp_path / "two.json").write_text(json.dumps({"id": "USN-1-1", "upstream": ["CVE-2026-1", "CVE-2026-2"]}))
    one, two = advisories.read([tmp_path])
    row = ledger.Row("CVE-2026-1", ledger.AFFECTED, "", "said", "do", "source", "2026-11-30")
    package = frozen.Package("deb", "openssl", "3.0.2-0ubuntu1")
    assert (row.decides(one, package), row.decides(two, package)) == (True, False)


def test_archives_in_a_folder_are_read_and_nothing_at_all_is_no_clean_bill(deploy: Deploy) -> None:
    (deploy.folder / "osv/PyPI").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"osv has no OSV record: give JSON files, zip archives, or a folder of them"):
        advisories.read([deploy.folder / "osv"])
    with zipfile.ZipFile(deploy.folder / "osv/PyPI/all.zip", "w") as archive:
        archive.writestr("X.json", json.dumps(MADE[4][0]))
    assert [each.id for each in advisories.read([deploy.folder / "osv"])] == ["MADE-05"]


def test_documents_go_where_they_can(deploy: Deploy) -> None:
    (deploy.folder / "mirror").mkdir()
    path = "pypi/wheels/numpy-2.1.0-py3-none-any.whl"
    (deploy.folder / "mirror" / LOCK).write_text(Lock(RELEASE, {path: Kept(path, "0" * 64, 3, "x")}).text())
    (deploy.folder / "a.json").write_text(json.dumps(MADE[4][0]))
    words = ("mirror", "holes", "mirror", "a.json", "--openvex")
    said = deploy.run(*words, "nowhere/x", code=2)
    assert said == "gaudi3-deploy: nowhere/x cannot be written (no such file or directory): give another file.\n"
    (deploy.folder / "link").symlink_to("kept")
    deploy.run(*words, "link", code=1)
    assert (deploy.folder / "link").is_symlink() and "MADE-05" in (deploy.folder / "kept").read_text()


def test_what_is_no_advisory(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("[", "[1]", "{}", json.dumps({**MADE[0][0], "affected": [1]}), "[" * 10_000):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"a\.json is no OSV record \(.*\): take it out\.$"):
            advisories.read([path])
    with pytest.raises(UsageError, match="cannot be read"):
        advisories.read([tmp_path / "missing.json"])
    with zipfile.ZipFile(tmp_path / "locked.zip", "w") as archive:
        archive.writestr("a.json", "{}")
    whole = (tmp_path / "locked.zip").read_bytes()
    place = whole.index(b"PK\x01\x02") + 8  # the flags of its entry, one of which says that it is encrypted
    for flags, method in ((b"\x01\0", b"\0\0"), (b"\0\0", b"\x63\0")):
        (tmp_path / "locked.zip").write_bytes(whole[:place] + flags + method + whole[place + 4 :])
        with pytest.raises(UsageError, match=r"locked\.zip cannot be read \("):
            advisories.read([tmp_path / "locked.zip"])
    git = {"type": "GIT", "repo": "x", "events": [{"introduced": "0"}]}
    path.write_text(
        json.dumps({"id": "X", "affected": [{"package": {"ecosystem": "PyPI", "name": "a"}, "ranges": [git]}]})
    )
    (found,) = advisories.read([path])
    assert found.affected[0].reaches("1.0") is None and found.affected[0].ranges == ()
    with pytest.raises(DeployError):
        vex.openvex([], RELEASE, "now")


@pytest.mark.parametrize("events", [[], [{"fixed": "2.0"}], [{"last_affected": "2.0"}]])
def test_a_range_that_does_not_say_where_it_begins_leaves_it_undecided(
    tmp_path: Path, events: list[dict[str, str]]
) -> None:
    ranges = [{"type": "ECOSYSTEM", "events": events}]
    record = {"id": "X", "affected": [{"package": {"ecosystem": "PyPI", "name": "a"}, "ranges": ranges}]}
    (tmp_path / "a.json").write_text(json.dumps(record))
    (found,) = advisories.read([tmp_path])
    assert (found.affected[0].reaches("1.0"), found.affected[0].reaches("2.0")) == (None, None)


DEBIAN = [
    "1.0", "1.0-0", "1.0-1", "1.0~rc1", "1.0~rc1-1", "1.0~~", "1.0+b1", "1.0a", "1.0-1ubuntu0.1", "1:0.9", "0:1.0",
    "1.10", "1.9", "01.0", "1.0-1~bpo12+1", "1.0.0", "2.35-0ubuntu3.8", "2:8.2-1", "1.0-a", "1.0z-2",
]  # fmt: skip


@pytest.mark.skipif(not shutil.which("dpkg"), reason="dpkg is missing, which says how it orders versions")
def test_versions_of_debian_are_ordered_as_dpkg_orders_them() -> None:
    random.seed(40)
    made = ["1" + "".join(random.choices("01aZ~.+", k=random.randint(1, 6))) for _each in range(40)]
    pairs = [(random.choice(DEBIAN), random.choice(DEBIAN)) for _each in range(40)] + list(
        zip(made[::2], made[1::2], strict=True)
    )
    for left, right in pairs:
        said = {
            sign for word, sign in (("lt", -1), ("eq", 0), ("gt", 1))
            if not subprocess.run(["dpkg", "--compare-versions", left, word, right], check=False).returncode
        }  # fmt: skip
        assert {order.compare_debian(left, right)} == said, (left, right)
