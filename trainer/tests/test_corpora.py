"""Made corpora in every form and state of damage: read for what they are, or refused by name; `make proof-corpora`."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL
from typer.testing import CliRunner, Result

pytest.importorskip("pyarrow")
pytest.importorskip("zstandard")

from corpora import COLUMNS, FOREIGN, JSON, READ, Made, make

from gaudi3_scale.cli import app
from gaudi3_scale.config import load
from gaudi3_scale.data.shards import read_index
from gaudi3_scale.errors import ConfigError
from tests.suite.proof import Proof

FORMS = [*READ, *FOREIGN]
RIGHTS = [f"rights, {what}" for what in ("file", "folder", "subfolder")]
CORPORA = 16
SAMPLE = 6
PROOF = Proof(
    "corpora",
    {
        "text": ["text", *JSON],
        "columns": list(COLUMNS),
        **{f"foreign {number}": list(FOREIGN)[number::4] for number in range(4)},
        "rights": RIGHTS,
    },
)
COLUMN_NAMES = ["corpora", "read", "refused"]
TEXT = """
Each corpus is made from a seed by `trainer/tests/corpora.py` in a form that is read (text, JSON lines, JSON lines and
arrays under `.json`, Parquet, Arrow) or in one that is not (tables, token ids of Megatron-LM and nanoGPT, NumPy,
pictures, PDF, SQLite, pickles, safetensors, pointers of Git LFS, HTML, archives). Forms that are read are compressed by
gzip, bzip2, xz, zstd or not at all, under a right, a wrong or no suffix; cut off, with a flipped bit, empty, with a NUL
byte, half a character, a byte-order mark, CRLF, or Latin-1; alone, or beside `README.md`, `LICENSE`, `_SUCCESS` or a
file of another form.

`gaudi3-train prepare` has to read exactly the bytes of the documents that were written, or to refuse the corpus in one
line that names a file of it, with exit code 2. `gaudi3-train tokenizer` has to agree, and so has the fit of a job for
one refused corpus of each form. Damage that a form cannot show, as a flipped bit in a column without a checksum, may be
read; it must not end in an error of another kind. With rights, a file, a folder or the whole corpus is closed to the
job's user.
"""


def run(command: list[str]) -> tuple[str | None, Result]:
    """The sentence that refuses, if one does, and the result."""
    done = CliRunner().invoke(app, command)
    if isinstance(done.exception, ConfigError):
        said = str(done.exception)
        assert "\n" not in said and said.endswith(".") and done.exception.exit_code == 2, said
        return said, done
    assert done.exit_code == 0, done.output
    return None, done


def judge(made: Made, work: Path) -> bool:
    """Whether a corpus is read; it fails for one that is read or refused wrongly."""
    source = f"data.source={made.source}"
    said, done = run(["prepare", source, f"data.directory={work}"])
    if said is not None:
        assert made.documents is None or made.either, (made.what, said)
        assert str(made.source) in said, (made.what, said)
    elif not made.either:
        assert made.documents is not None, (made.what, done.output)
        corpus = read_index(next(work.iterdir()))
        assert corpus is not None and corpus.documents == len(made.documents), (made.what, done.output)
        assert np.concatenate(corpus.arrays()).tobytes() == b"".join(each + b"\n" for each in made.documents), made.what
    again, _ = run(["tokenizer", "--vocab-size=258", f"--to={work / 'tokenizer.json'}", source])
    assert (again is None) == (said is None) or not made.documents, (made.what, said, again)
    return said is None


def refuse_fit(made: Made, folder: Path) -> None:
    """A job on a corpus that is refused ends before its first step."""
    from gaudi3_scale.job.fit import fit

    settings = [*SMALL, f"data.source={made.source}", f"output_dir={folder}"]
    with pytest.raises(ConfigError) as error:
        fit(load(None, settings))
    assert str(made.source) in str(error.value), made.what
    assert not (folder / "metrics.jsonl").exists()


@pytest.mark.parametrize("form", PROOF.parameters({case: case for case in PROOF.cases}))
def test_a_corpus_is_read_for_what_it_is_or_refused(tmp_path: Path, form: str) -> None:
    PROOF.skip_if_held(form)
    count = CORPORA if PROOF.is_running else SAMPLE
    if form in RIGHTS:
        # Every start of pytest closes the folder of tmp_path to other users.
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            seen = closed(Path(folder), form.removeprefix("rights, "), count)
    else:
        seen = Counter()
        for number in range(count):
            made = make(random.Random(f"{form} {number}"), tmp_path / str(number), form)
            is_read = judge(made, tmp_path / f"work-{number}")
            if PROOF.is_running and not is_read and not seen[False]:
                refuse_fit(made, tmp_path / "job")
            seen[is_read] += 1
    if PROOF.is_running:
        PROOF.note(form, dict(zip(COLUMN_NAMES, (count, seen[True], seen[False]), strict=True)))
        PROOF.write_table("Made corpora, read or refused", TEXT, COLUMN_NAMES)


#: Imports first, as another user may not enter the folder of root's own Python.
AS_ANOTHER = """
import os, sys
from gaudi3_scale.config import DataConfig
from gaudi3_scale.data.sources import START, open_source
from gaudi3_scale.errors import ConfigError
import pyarrow.parquet, zstandard
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for source in sys.argv[1:]:
    try:
        print(len(list(open_source(DataConfig(source=source)).pieces(START))))
    except ConfigError as error:
        print(error)
"""


def closed(folder: Path, what: str, count: int) -> Counter[bool]:
    """Corpora of which a part is closed to the user who reads them; each is refused, and that part is named."""
    shut = []
    for number in range(count):
        form = list(READ)[number % len(READ)]
        made = make(random.Random(f"rights {number}"), folder / str(number) / "data", form, sound=True)
        inner = made.source / "inner"
        inner.mkdir()
        (inner / "more.jsonl").write_text('{"text": "more"}')
        shut.append({"file": inner / "more.jsonl", "folder": made.source, "subfolder": inner}[what])
        shut[-1].chmod(0)
    sources = [str(folder / str(number) / "data") for number in range(count)]
    done = subprocess.run([sys.executable, "-c", AS_ANOTHER, *sources], capture_output=True, text=True, check=False)
    for path in shut:
        path.chmod(0o755)
    said = done.stdout.splitlines()
    assert len(said) == count, done.stderr
    for path, each in zip(shut, said, strict=True):
        assert each.startswith(f"{path} cannot be read (Permission denied): "), said
    return Counter({False: count})
