"""What a command does, as spans of a trace, where that is asked for (`OTEL_TRACES_EXPORTER=otlp`).

Ansible and the jobs go on with the trace: they get it in the environment.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gaudi3_deploy.collection import _traces

CALLBACK = "gaudi3.scale.traces"
ENABLED = "ANSIBLE_CALLBACKS_ENABLED"

_recorder: _traces.Recorder | None = None


@contextmanager
def command(name: str) -> Iterator[None]:
    """Trace what a command does, and send the last of it before the command ends."""
    global _recorder
    if _recorder is not None or not _traces.is_wanted(os.environ):
        yield
        return
    _recorder = recorder = _traces.Recorder("gaudi3-deploy", os.environ.get(_traces.VARIABLE, ""))
    try:
        with span(name):
            yield
    finally:
        _recorder = None
        problem = recorder.close()
        if problem:
            print(f"gaudi3-deploy: {problem}", file=sys.stderr)


@contextmanager
def span(name: str) -> Iterator[None]:
    """A phase of the command; an exception is named by its type alone."""
    recorder = _recorder
    if recorder is None:
        yield
        return
    begun = recorder.begin(name)
    try:
        yield
    except BaseException as error:
        recorder.end(begun, type(error).__name__)
        raise
    recorder.end(begun)


def go_on_with(earlier: str) -> str:
    """What is open continues the trace of an earlier command, if there is one; gives its own place in the trace."""
    if _recorder is None:
        return earlier
    if earlier:
        _recorder.join(earlier)
    return _recorder.traceparent


def environment(checkout: Path | None) -> Mapping[str, str]:
    """What Ansible, which is started there, gets besides: the trace, and the plugin that goes on with it."""
    if _recorder is None or not _recorder.traceparent:
        return {}
    names = [each.strip() for each in enabled(checkout).split(",") if each.strip()]
    plugins = names if CALLBACK in names else [*names, CALLBACK]
    return {_traces.VARIABLE: _recorder.traceparent, ENABLED: ",".join(plugins)}


def enabled(checkout: Path | None) -> str:
    """The callbacks that Ansible, which is started there, is told to load."""
    return os.environ.get(ENABLED) or _enabled_by_file(checkout)


def _enabled_by_file(checkout: Path | None) -> str:
    """The plugins of the configuration that Ansible is going to read, which a variable would replace."""
    given = os.environ.get("ANSIBLE_CONFIG")
    places = [Path(given)] if given else [(checkout or Path()) / "ansible.cfg"]
    places += [Path.home() / ".ansible.cfg", Path("/etc/ansible/ansible.cfg")]
    found = next((each for each in places if each.is_file()), None)
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    with contextlib.suppress(configparser.Error, OSError, UnicodeDecodeError):  # Ansible says it better
        parser.read([] if found is None else [found])
    return parser.get("defaults", "callbacks_enabled", fallback="")
