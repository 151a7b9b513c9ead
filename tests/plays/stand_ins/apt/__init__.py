"""As much of python3-apt as ansible.builtin.apt asks: the packages of the simulated host."""

import json
import os

import apt_pkg

from . import cache, debfile  # noqa: F401


class Version:
    def __init__(self, version) -> None:
        self.version = self.ver_str = version


class Package:
    def __init__(self, name, version) -> None:
        self.name = name
        self.installed = Version(version)
        self.candidate = Version(version)
        self.is_installed = True
        self.is_upgradable = False
        self.installed_files = ["/usr/share/doc/" + name]
        self.current_state = apt_pkg.CURSTATE_INSTALLED
        self.version_list = [Version(version)]


class Cache(dict):
    """Installed packages by name; nothing else is known, as on a host whose lists were never fetched."""

    def __init__(self, progress=None) -> None:
        with open(os.environ["STAND_IN_HOST"] + "/packages.json", encoding="utf-8") as stream:
            packages = json.load(stream)
        super().__init__({name: Package(name, version) for name, version in packages.items()})
        self._cache = self

    def __iter__(self):
        return iter(list(self.values()))

    def is_virtual_package(self, _name) -> bool:
        return False

    def get_providing_packages(self, _name):
        return []

    def update(self) -> None:
        pass

    def open(self, progress=None) -> None:
        pass
