"""As much of python3-apt's low level as ansible.builtin.apt asks."""

CURSTATE_INSTALLED = 6


class Config(dict):
    """apt's settings; no file of the machine that runs the tests is read."""

    def find_file(self, _name: str) -> str:
        return ""

    def find_dir(self, _name: str) -> str:
        """A folder that there is: ansible-core 2.21 would have apt update its lists for another."""
        return "/"


config = Config()


class Error(Exception):
    """What python-apt raises."""


def version_compare(left: str, right: str) -> int:
    return (left > right) - (left < right)


class Policy:
    """The candidate is the version that the stand-in's package has."""

    def __init__(self, cache) -> None:
        pass

    def read_pinfile(self, _path) -> None:
        pass

    read_pindir = read_pinfile

    def create_pin(self, *_pin) -> None:
        pass

    def get_candidate_ver(self, package):
        return package.candidate
