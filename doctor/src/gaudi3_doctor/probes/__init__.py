"""What is tried on the cards: a program of its own, which `card_sections` copies into a folder and starts.

It runs in the Python that has torch, as the jobs' user, and writes a line of JSON for each thing that it tried, so that
a crash or a hang costs one answer. It imports nothing of the package around it.
"""
