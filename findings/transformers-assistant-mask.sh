#!/usr/bin/env bash
# transformers 5.23.0 with tokenizers 0.23.3: apply_chat_template(return_assistant_tokens_mask=True) depends on which
# message a blank belongs to, where the tokenizer leaves blanks out of its offsets.
#
# A byte-level tokenizer with trim_offsets (the default of tokenizers' ByteLevel post-processor) leaves a blank out of
# the offsets of the word behind it, and the mask is looked up by offsets. Three conversations that are one and the same
# text, and the same tokens:
# - the blank is the user's: the mask is the answer's one token;
# - the blank ends the answer: the mask runs to the end of the conversation, with all that the user says afterwards;
# - a blank begins the answer: the mask is empty, and nothing of the conversation is learnt.
set -euo pipefail
python=${PYTHON:-python3}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
"$python" -m venv venv
venv/bin/pip install --quiet transformers==5.23.0 tokenizers==0.23.3 jinja2==3.1.6
cat > look.py <<'PY'
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}"
)
words = ["a", "b", "c", "Ġa", "Ġb", "Ġc", "Ġ"]
made = Tokenizer(models.BPE({word: n for n, word in enumerate(words)}, [("Ġ", "a"), ("Ġ", "b"), ("Ġ", "c")]))
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.post_processor = processors.ByteLevel(trim_offsets=True)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made)
for said in (("a", "b", " c c"), ("a", "b ", "c c"), ("ab", " c", " c")):
    talk = [{"role": role, "content": text} for role, text in zip(("user", "assistant", "user"), said)]
    seen = tokenizer.apply_chat_template(
        talk, chat_template=TEMPLATE, return_dict=True, return_assistant_tokens_mask=True
    )
    print(said, tokenizer.convert_ids_to_tokens(seen["input_ids"]), seen["assistant_masks"])
PY
venv/bin/python look.py 2>/dev/null | tee seen
diff seen - <<'TXT'
('a', 'b', ' c c') ['a', 'b', 'Ġc', 'Ġc'] [0, 1, 0, 0]
('a', 'b ', 'c c') ['a', 'b', 'Ġc', 'Ġc'] [0, 1, 1, 1]
('ab', ' c', ' c') ['a', 'b', 'Ġc', 'Ġc'] [0, 0, 0, 0]
TXT
