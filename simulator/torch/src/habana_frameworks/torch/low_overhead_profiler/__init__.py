"""Where Habana keeps its profiler of the host's part."""
