"""Quantisation through torch.export: refused."""

from __future__ import annotations

from gaudi3_hpu_simulator.errors import refusing, refusing_class

_INSTEAD = "run unquantised, or on hardware"

habana_quantizer = refusing_class("habana_quantizer", _INSTEAD)
habana_quant_config_symmetric = refusing("habana_quant_config_symmetric", _INSTEAD)
_mark_nodes_as_annotated = refusing("_mark_nodes_as_annotated", _INSTEAD)
_update_input_qspec_map = refusing("_update_input_qspec_map", _INSTEAD)
