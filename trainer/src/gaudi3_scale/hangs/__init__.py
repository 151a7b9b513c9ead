"""Who holds up the others: each process notes its collectives in memory that its launcher reads when nothing moves.

`ring` is that memory, `counter` notes torch's collectives in it, `compare` finds who is missing, `verdict` puts it into
a sentence, and `watch` is the launcher's part: it reads the rings of its node, exchanges them with the other nodes'
launchers, and says the sentence.
"""
