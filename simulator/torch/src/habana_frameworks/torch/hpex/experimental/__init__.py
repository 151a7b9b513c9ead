"""Where Habana keeps its transformer engine."""
