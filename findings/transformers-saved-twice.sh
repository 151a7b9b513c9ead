#!/usr/bin/env bash
# transformers 4.55.4 and 5.23.0: a model that is saved in several files over one in one file is read back as the old one.
#
# save_pretrained takes the parts of an earlier save away, and nothing else of it. In a folder with model.safetensors,
# parts and an index are written beside that file, and from_pretrained reads the file: the weights from before, without
# a word. The other way round, the index of parts that are gone stays, which readers that go by the index call cut off.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > try.py <<'PY'
import os
import sys

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                                     num_attention_heads=2, num_key_value_heads=2))
FORMS = {"one file": {}, "parts": {"max_shard_size": "5KB"}}
for first, second in (("one file", "parts"), ("parts", "one file")):
    where = f"{sys.argv[1]}/{first}"
    for value, form in ((1, first), (2, second)):
        with torch.no_grad():
            model.model.norm.weight.fill_(value)
        model.save_pretrained(where, **FORMS[form])
    read = int(AutoModelForCausalLM.from_pretrained(where).model.norm.weight[0])
    names = [name for name in sorted(os.listdir(where)) if name.startswith("model") and "-0" not in name]
    print(f"1 as {first}, then 2 as {second}: read {read}, {' '.join(names)}")
PY
"$python" -m venv env
for version in 4.55.4 5.23.0; do
  env/bin/pip install --quiet "transformers==$version" "torch==2.13.0"
  echo "transformers $version"; HF_HOME="$folder/home" env/bin/python try.py "$folder/$version-saved" 2> /dev/null
done | tee seen
diff seen - <<'TXT'
transformers 4.55.4
1 as one file, then 2 as parts: read 1, model.safetensors model.safetensors.index.json
1 as parts, then 2 as one file: read 2, model.safetensors model.safetensors.index.json
transformers 5.23.0
1 as one file, then 2 as parts: read 1, model.safetensors model.safetensors.index.json
1 as parts, then 2 as one file: read 2, model.safetensors model.safetensors.index.json
TXT
