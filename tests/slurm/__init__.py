"""A real Slurm on machines that are namespaces of this one, and what it does with jobs and nodes."""
