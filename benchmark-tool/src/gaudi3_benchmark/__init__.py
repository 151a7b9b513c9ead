"""`gaudi3-benchmark`: measures training steps of published shapes on one device, reports and compares the results.

| file | concern |
|---|---|
| `result` | the result file: its schema, reading and writing |
| `intervals` | intervals of medians and of ratios |
| `workloads` | the model, batch and operations of each shape |
| `measure` | times one row |
| `runner` | all rows of a run, written after each, resumed after a kill |
| `comparison` | two results, row by row |
| `pictures`, `report` | the report |
| `signature` | results signed and verified with `ssh-keygen` |
| `cli` | the command |
"""
