"""Errors a user can act on: one sentence each, with the exit code of `gaudi3-train`."""


class TrainerError(Exception):
    """Training cannot go on; the message is one sentence that says what to do."""

    exit_code = 1


class ConfigError(TrainerError):
    """The configuration asks for something that is not allowed or not there."""

    exit_code = 2
