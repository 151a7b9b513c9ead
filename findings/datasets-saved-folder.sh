#!/usr/bin/env bash
# datasets 3.6.0 and 5.2.0: a folder of save_to_disk fills with tables that are none of the dataset.
#
# `load_from_disk(FOLDER).map(...)` and `.filter(...)` keep their cache in FOLDER itself, not below ~/.cache as for a
# dataset of the Hub: the folder that was only read then holds each document two or three times, and indices. And a second, smaller
# dataset that is saved into the same folder leaves the tables of the first there. `load_from_disk` goes by state.json
# and sees neither; whoever reads `*.arrow` of the folder trains on documents that are not in the dataset.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > try.py <<'PY'
import glob
import os
import pyarrow
import datasets

datasets.disable_progress_bars()


def rows(folder):
    """Documents by the library, files, and documents by all tables of the folder that have a text."""
    found = 0
    for path in glob.glob(f"{folder}/*.arrow"):
        with pyarrow.memory_map(path) as source, pyarrow.ipc.open_stream(source) as table:
            found += table.read_all().num_rows if "text" in table.schema.names else 0
    kinds = sorted(name.split("-")[0] for name in os.listdir(folder) if name.endswith(".arrow"))
    return f"load_from_disk {len(datasets.load_from_disk(folder))}, *.arrow {found}, {kinds}"


made = datasets.Dataset.from_dict({"text": [f"document {number}" for number in range(100)]})
made.save_to_disk("read")
datasets.load_from_disk("read").map(lambda row: {"text": row["text"].upper()}).filter(lambda row: "7" in row["text"])
print("after map and filter:", rows("read"))
made.save_to_disk("again", num_shards=2)
made.select(range(10)).save_to_disk("again", num_shards=1)
print("after a second save:", rows("again"))
PY
for versions in "3.6.0 21.0.0" "5.2.0 26.0.1"; do
  read -r version arrow <<< "$versions"
  "$python" -m venv "$version"
  "$version/bin/pip" install --quiet "datasets==$version" "pyarrow==$arrow"
  echo "datasets $version"; HF_HOME="$folder/home" "$version/bin/python" try.py
done | tee seen
diff seen - <<'TXT'
datasets 3.6.0
after map and filter: load_from_disk 100, *.arrow 200, ['cache', 'cache', 'data']
after a second save: load_from_disk 10, *.arrow 110, ['data', 'data', 'data']
datasets 5.2.0
after map and filter: load_from_disk 100, *.arrow 300, ['cache', 'cache', 'cache', 'cache', 'data']
after a second save: load_from_disk 10, *.arrow 110, ['data', 'data', 'data']
TXT
