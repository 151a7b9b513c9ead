"""Operations that the compiler leaves to eager mode: none is added here."""

from habana_frameworks.torch.dynamo.debug_utils.logger import get_compile_backend_logger

logger = get_compile_backend_logger()
hpu_fallback_op_list: set[str] = set()
