"""What Lightning needs to know of Gaudi: an accelerator and four strategies.

Importing this package, which all names of `gaudi3_scale` for a Trainer do, registers them with Lightning.
"""

from gaudi3_scale.hpu.torch_import import refuse_known_bad
from gaudi3_scale.integration.lightning_variants import register

refuse_known_bad()  # before Lightning is imported
register()
import gaudi3_scale.integration.ddp.strategy  # noqa: E402, F401 (offers optimized_ddp, once the rest is registered)
