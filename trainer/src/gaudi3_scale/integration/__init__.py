"""What Lightning needs to know of Gaudi: accelerator `hpu`; strategies habana_ddp, habana_fsdp and gaudi_single.

Importing this package, which all names of `gaudi3_scale` for a Trainer do, registers them with Lightning.
"""

from gaudi3_scale.integration.twins import register

register()
