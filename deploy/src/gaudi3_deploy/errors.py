"""What a user can act on, in one sentence."""


class DeployError(Exception):
    """Shown without a traceback; exit code 1."""


class UsageError(DeployError):
    """What was asked for can't be; exit code 2."""
