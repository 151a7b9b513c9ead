"""The exit code of a job that left in order."""

EXIT_CODE = 75
"""EX_TEMPFAIL of sysexits.h: nothing is wrong, and the same command goes on from the newest checkpoint."""
