"""Casts to and from fp8: refused."""

from gaudi3_hpu_simulator.errors import refusing

cast_to_fp8 = refusing("fp8 (cast_to_fp8)", "use bfloat16, or run on hardware")
cast_from_fp8 = refusing("fp8 (cast_from_fp8)", "use bfloat16, or run on hardware")
