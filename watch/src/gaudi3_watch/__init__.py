"""`gaudi3-watch`: one read-only page for a training, its cards, its nodes, its cost and the fleet.

It needs what the command line of the trainer needs, and no torch.
"""
