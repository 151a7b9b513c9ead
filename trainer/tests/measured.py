"""A job on the simulated device that writes the most bytes its process had in use: the arguments are those of `fit`."""

from __future__ import annotations

import json
import os
import sys

import gaudi3_scale.integration.strategies
import gaudi3_scale.job.fit
from gaudi3_scale.config import load
from gaudi3_scale.hpu.torch_import import import_torch_for

settings = load(None, sys.argv[1:])
os.environ["PT_HPU_LAZY_MODE"] = "0"
import_torch_for(settings)
# The check of the device's numbers takes 25 MB before training, more than these small models do.
for module in (gaudi3_scale.job.fit, gaudi3_scale.integration.strategies):
    module.check_numbers_once = lambda device: None  # type: ignore[attr-defined]
gaudi3_scale.job.fit.fit(settings)
import torch  # noqa: E402  after `import_torch_for`, as in a job

stats = torch.hpu.memory_stats()  # type: ignore[attr-defined]
rank = os.environ.get("RANK", "0")
(settings.output_dir / f"peak-{rank}.json").write_text(json.dumps({"peak": stats["MaxInUse"]}))
sys.stdout.flush()
