"""A node of an owner as a simulated one, made of the report that the node gave of itself.

| file | concern |
|---|---|
| `reports` | opening a doctor's report, a support bundle or a table of `hl-smi`, and refusing what is none |
| `facts` | what a report says of the node: cards, versions, place, settings |
| `values` | values of a report, whose form nobody warrants |
| `known` | which fields of a report are known |
| `table` | the cards in the table of `hl-smi` |
| `log` | the cards in a text of `hl-smi -L` |
| `product` | the collection's own health engine, which judges report and twin alike |
| `recorded` | what a report's node answered, as files and tools that the engine reads |
| `inverse` | the fault of the simulator behind each verdict |
| `folder` | the twin on disk: the simulator's state file, and what that has no place for |
| `stand` | a node's folder on this machine, made of a twin |
| `replay` | the verdicts of the report beside those of the twin |
| `fleet` | twins of all hosts of an inventory |
| `commands` | `from-report` and `from-inventory` |
"""
