"""What Lightning needs to know of Gaudi: accelerator `gaudi`; strategies habana_ddp, habana_fsdp and gaudi_single."""

from gaudi3_scale.integration.twins import register

register()
