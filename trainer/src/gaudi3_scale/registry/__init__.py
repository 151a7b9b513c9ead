"""Registered models: versions with lineage in MLflow's model registry, fetched only where every file is as it was."""
