#!/usr/bin/env bash
# transformers 5.23.0: add_bos_token = True on a plain fast tokenizer adds a token; in 4.55.4 it did nothing.
#
# In 4.55.4 the attribute is one like any other, except with tokenizers of some families. In 5.23.0 every fast tokenizer
# obeys it: a program that has set it for years trains on other texts, each with a token more, and says nothing.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > try.py <<'PY'
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

words = Tokenizer(models.WordLevel({"[UNK]": 0, "[BOS]": 1, "one": 2, "two": 3}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", bos_token="[BOS]", eos_token="[BOS]")
print("before:", tokenizer("one two")["input_ids"])
tokenizer.add_bos_token = True
print("after: ", tokenizer("one two")["input_ids"])
PY
"$python" -m venv env
for version in 4.55.4 5.23.0; do
  env/bin/pip install --quiet "transformers==$version"
  echo "transformers $version"; HF_HOME="$folder/home" env/bin/python try.py 2> errors || tail -1 errors
done | tee seen
diff seen - <<'TXT'
transformers 4.55.4
before: [2, 3]
after:  [2, 3]
transformers 5.23.0
before: [2, 3]
after:  [1, 2, 3]
TXT
