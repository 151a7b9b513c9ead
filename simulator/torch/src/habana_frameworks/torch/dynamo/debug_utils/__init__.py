"""The compiler's log."""
