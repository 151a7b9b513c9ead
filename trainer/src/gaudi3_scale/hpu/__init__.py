"""All that is special about a Gaudi card: what it is, how it is acquired and checked, and what torch needs for it."""
