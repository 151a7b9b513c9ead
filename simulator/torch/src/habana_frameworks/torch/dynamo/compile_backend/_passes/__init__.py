"""Parts of the compiler's passes."""
