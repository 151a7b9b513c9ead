"""Folders as `gaudi3-train export` leaves them, which differ in the length of their sequences."""

import json
import pathlib

for name, length in (("llm", 4096), ("short", 512), ("long", 8192)):
    folder = pathlib.Path("/srv/models", name)
    folder.mkdir(parents=True)
    config = {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": length}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    header = json.dumps({"a": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}).encode()
    weights = folder / "model.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    weights.chmod(0o600)
    folder.chmod(0o700)
