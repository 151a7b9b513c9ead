"""Who the processes are and how they agree: `process_group`, what they exchange, and what watches over it.

`from gaudi3_scale.distributed import OptimizedDDP` brings torch and Lightning with it.
"""

from gaudi3_scale.lazy import lazily

__getattr__ = lazily(__name__)
