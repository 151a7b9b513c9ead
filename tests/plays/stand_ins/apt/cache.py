"""Exceptions that are caught by name."""


class FetchFailedException(Exception):
    pass


class LockFailedException(Exception):
    pass
