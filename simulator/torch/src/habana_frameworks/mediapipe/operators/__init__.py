"""Steps of a pipeline, by where they run."""
