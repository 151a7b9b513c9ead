"""The table of releases that are known to do harm, and the spellings of a version."""

from __future__ import annotations

from gaudi3_doctor.known_bad import KNOWN_BAD, complaint


def test_a_release_is_known_by_its_number() -> None:
    for bad in KNOWN_BAD:
        for version in bad.versions:
            told = complaint({bad.package: version, "rich": "15.0.0"})
            assert told.startswith(
                f"{bad.package} {version} is installed, which {bad.reason} ({bad.source}, {bad.date}):"
            )
            assert told.endswith(f" and install {bad.instead}.")
    for same in ("2.6.3+local.1", "2.6.3.0", "2.6.3.0.0", "v2.6.3", "0!2.6.3", "2.06.3"):
        assert complaint({"lightning": same}), same
    for other in ("2.6.3.post1", "2.6.3rc1", "1!2.6.3", "2.6.30", "12.6.3"):
        assert complaint({"lightning": other}) == "", other
    for versions in (
        {},
        {"lightning": "2.6.1"},
        {"lightning": "2.6.6", "pytorch-lightning": "2.6.6"},
        {"rich": "2.6.3"},
    ):
        assert complaint(versions) == ""
