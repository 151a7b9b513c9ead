"""Experiment trackers: TensorBoard, MLflow, Weights & Biases, each behind a queue of its own."""
