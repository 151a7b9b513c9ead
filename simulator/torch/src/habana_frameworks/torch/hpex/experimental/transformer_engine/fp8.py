"""The state of training in fp8, which is always off."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing

_INSTEAD = "use bfloat16, or run on hardware"


class FP8GlobalStateManager:
    """What of fp8 is turned on in this process: nothing."""

    get_global_fp8_buffer_checkpoint = staticmethod(refusing("fp8", _INSTEAD))
    get_manual_measurement_mode = staticmethod(refusing("fp8", _INSTEAD))
    set_measurement_mode = staticmethod(refusing("fp8", _INSTEAD))

    @staticmethod
    def is_fp8_enabled() -> bool:
        """No."""
        return False

    @staticmethod
    def reset_global_state() -> None:
        """Nothing to do: there is no state."""


_default_sf_compute = refusing("fp8", _INSTEAD)
get_fp8_te_sr = refusing("fp8", _INSTEAD)
