#!/usr/bin/env bash
# transformers 5.23.0: AutoProcessor gives the tokenizer of a folder that an extractor and a tokenizer were saved into.
#
# A feature extractor that was read from a folder which names its processor keeps that name: transformers 4.55.4 writes
# it into what save_pretrained saves, and AutoProcessor finds the processor by it. Version 5 does not write it. Without
# a config.json beside the two files, AutoProcessor.from_pretrained then gives the tokenizer alone, without a word: the
# pattern of the public speech recognition examples, in which the collator then asks a tokenizer for its inputs' names.
# With config=, the configuration of the model, the processor comes back.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
cat > try.py <<'PY'
import json
import pathlib
import sys

from transformers import AutoFeatureExtractor, AutoProcessor, AutoTokenizer, Wav2Vec2Config

given, saved = (pathlib.Path(sys.argv[1], name) for name in ("given", "saved"))
given.mkdir(parents=True)
files = {
    "vocab.json": {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4, "a": 5},
    "tokenizer_config.json": {"tokenizer_class": "Wav2Vec2CTCTokenizer"},
    "preprocessor_config.json": {"feature_extractor_type": "Wav2Vec2FeatureExtractor",
                                 "processor_class": "Wav2Vec2Processor"},
    "config.json": {"model_type": "wav2vec2"},
}
for name, content in files.items():
    (given / name).write_text(json.dumps(content))
AutoFeatureExtractor.from_pretrained(given).save_pretrained(saved)
AutoTokenizer.from_pretrained(given).save_pretrained(saved)
named = [path.name for path in sorted(saved.iterdir()) if "processor_class" in path.read_text()]
print("named in:", *named or ["no file"])
for what, more in (("without", {}), ("with", {"config": Wav2Vec2Config()})):
    print(f"AutoProcessor {what} config=: {type(AutoProcessor.from_pretrained(saved, **more)).__name__}")
PY
"$python" -m venv env
for version in 4.55.4 5.23.0; do
  env/bin/pip install --quiet "transformers==$version"
  echo "transformers $version"; HF_HOME="$folder/home" env/bin/python try.py "$folder/$version" 2> errors || tail -1 errors
done | tee seen
diff seen - <<'TXT'
transformers 4.55.4
named in: preprocessor_config.json
AutoProcessor without config=: Wav2Vec2Processor
AutoProcessor with config=: Wav2Vec2Processor
transformers 5.23.0
named in: no file
AutoProcessor without config=: Wav2Vec2CTCTokenizer
AutoProcessor with config=: Wav2Vec2Processor
TXT
