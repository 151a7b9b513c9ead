"""Signs a result with an SSH key and verifies it, with `ssh-keygen -Y`, which every administrator has.

The one who measures signs with the key that he logs in with. The one who receives keeps a file of allowed signers, a
name and a public key in each line (ssh-keygen(1), "ALLOWED SIGNERS").
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gaudi3_benchmark.result import read
from gaudi3_scale.errors import ConfigError, TrainerError

NAMESPACE = "gaudi3-benchmark"
"""A signature that was made for another purpose is not valid for this one."""


def signature_of(path: Path) -> Path:
    """Where `ssh-keygen` puts it."""
    return path.with_name(path.name + ".sig")


def sign(path: Path, key: Path) -> Path:
    """Sign a finished result; the file of the signature. `key` may be a public one whose private one the agent has."""
    found = read(path)
    if not found.complete:
        raise ConfigError(f"{path} is not finished: go on with gaudi3-benchmark run --resume, then sign it.")
    if not key.is_file():
        raise ConfigError(f"--key is {key}, which is no file: give an SSH key, or make one with ssh-keygen -t ed25519.")
    made = signature_of(path)
    made.unlink(missing_ok=True)  # ssh-keygen would ask
    ran = _keygen(["sign", "-q", "-f", str(key), "-n", NAMESPACE, str(path)])
    if ran.returncode or not made.exists():
        raise TrainerError(f"ssh-keygen could not sign {path} with {key} ({_last_line(ran)}): give a key it can use.")
    return made


def verify(path: Path, signers: Path, signature: Path | None = None) -> str:
    """Who signed the file, by the name in `signers`; a TrainerError if nobody there did, or it was changed since."""
    signature = signature or signature_of(path)
    for what, file in (("--signers", signers), ("the signature", signature), ("the result", path)):
        if not file.is_file():
            raise ConfigError(f"{what} is {file}, which is no file: give one.")
    found = _keygen(["find-principals", "-s", str(signature), "-f", str(signers)])
    names = found.stdout.decode(errors="replace").split()
    if found.returncode or not names:
        raise TrainerError(
            f"{signature} is of a key that {signers} does not have: take the result for unsigned, or add the key of "
            "its signer."
        )
    checked = _keygen(
        ["verify", "-f", str(signers), "-I", names[0], "-n", NAMESPACE, "-s", str(signature)], path.read_bytes()
    )
    if checked.returncode:
        raise TrainerError(
            f"{path} is not what {names[0]} signed ({_last_line(checked)}): ask {names[0]} for the file again."
        )
    read(path)
    return names[0]


def _keygen(arguments: list[str], text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise TrainerError("ssh-keygen is not installed: install the OpenSSH client.")
    return subprocess.run([program, "-Y", *arguments], input=text, capture_output=True, timeout=120, check=False)


def _last_line(ran: subprocess.CompletedProcess[bytes]) -> str:
    lines = (ran.stderr or ran.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else f"exit code {ran.returncode}"
