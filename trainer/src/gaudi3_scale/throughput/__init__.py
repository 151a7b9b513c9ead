"""How fast a job is and where its time goes: tokens/s, MFU and goodput.

Nothing is imported here, since the command line reads ledgers without torch.
"""
