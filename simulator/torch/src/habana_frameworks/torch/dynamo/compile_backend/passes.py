"""The compiler's passes over a graph: refused, nothing is compiled. Names: [bridge] 1.19, its tests of `compile`."""

from gaudi3_hpu_simulator.errors import refusing
from habana_frameworks.torch.dynamo.debug_utils.logger import get_compile_backend_logger

_INSTEAD = "run on hardware"

logger = get_compile_backend_logger()

match_full_copy_pattern = refusing("match_full_copy_pattern", _INSTEAD)
pass_allreduce_parents = refusing("pass_allreduce_parents", _INSTEAD)
pass_eagerize_leaf_views = refusing("pass_eagerize_leaf_views", _INSTEAD)
pass_fake_propagation = refusing("pass_fake_propagation", _INSTEAD)
pass_fuse_partitions = refusing("pass_fuse_partitions", _INSTEAD)
pass_merge_paths = refusing("pass_merge_paths", _INSTEAD)
pass_post_process_partitions = refusing("pass_post_process_partitions", _INSTEAD)
pass_propose_partitions = refusing("pass_propose_partitions", _INSTEAD)
pass_reinplace_add_ops = refusing("pass_reinplace_add_ops", _INSTEAD)
pass_reinplace_index_copy_ops = refusing("pass_reinplace_index_copy_ops", _INSTEAD)
pass_remove_unnecessary_full_copy = refusing("pass_remove_unnecessary_full_copy", _INSTEAD)
pass_reorder_allreduce = refusing("pass_reorder_allreduce", _INSTEAD)
