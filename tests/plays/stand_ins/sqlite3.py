"""Python's own sqlite3, whose databases lie where the host's files do: it opens them itself, without Python's open."""

import importlib.util
import os
import sys

import sitecustomize

_PLACE = os.path.join(os.path.dirname(os.__file__), "sqlite3")
_SPEC = importlib.util.spec_from_file_location("sqlite3", f"{_PLACE}/__init__.py", submodule_search_locations=[_PLACE])
_module = sys.modules["sqlite3"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_module)
_connect = _module.connect


def connect(database, **options):
    """Open a database, which may be named as a file:URI."""
    scheme = "file:" if options.get("uri") else ""
    return _connect(scheme + sitecustomize.at(database.removeprefix(scheme)), **options)


_module.connect = connect
