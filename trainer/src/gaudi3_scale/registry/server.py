"""MLflow's model registry: versions, the aliases that they are known by, and their files.

Who may do what is MLflow's matter: it reads MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and
MLFLOW_TRACKING_PASSWORD, from the environment. Nothing of that is kept or shown here.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from gaudi3_scale.config.registered import ALIASES, Reference
from gaudi3_scale.errors import ConfigError, TrainerError
from gaudi3_scale.extras import how_to_install
from gaudi3_scale.registry import model_manifest as manifest

TRACKING, REGISTRY = "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"
CHAMPION = "champion"
HISTORY = "gaudi3.champions"
"""Tag of a registered model: the versions that were champion, the newest last, with commas between them."""
KEPT = 50
"""Champions that are remembered."""
TAG = "gaudi3."
MANIFEST_TAG, CONTENT_TAG = f"{TAG}manifest_sha256", f"{TAG}content_sha256"
T = TypeVar("T")


@dataclass(frozen=True)
class Version:
    """One version of a registered model."""

    name: str
    number: int
    source: str
    """Where its files are, as MLflow says it."""
    tags: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of its manifest; ConfigError where another program registered it."""
        found = self.tags.get(MANIFEST_TAG, "")
        if not manifest.DIGEST.fullmatch(found):
            raise ConfigError(
                f"{self} has no digest of a manifest (tag {MANIFEST_TAG}), so that nobody can tell whether its files "
                "are whole: register the model with `gaudi3-train register`."
            )
        return found

    def __str__(self) -> str:
        return f"{self.name} version {self.number}"


class RegistryServer:
    """The registry at one address."""

    def __init__(self, uri: str | None = None) -> None:
        """`uri` is a tracking server's; without it MLflow's own variables tell. Nothing is asked yet."""
        if importlib.util.find_spec("mlflow") is None:
            raise ConfigError(f"The registry is MLflow's, which is not installed: {how_to_install('mlflow')}.")
        found = uri or os.environ.get(TRACKING) or os.environ.get(REGISTRY)
        if not found:
            raise ConfigError(
                f"Nothing says where the registry is: set {TRACKING} to the address of MLflow's tracking server, such "
                "as http://HOST:5000, or give it by --uri (in a job, by tracking.mlflow_uri)."
            )
        self.uri = found
        # MLflow tries for minutes by itself; whoever waits here is a person, or a job that holds cards.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
        os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        self._client: Any = None

    @property
    def shown(self) -> str:
        """Its address without a user's name and password."""
        return without_credentials(self.uri)

    def call(self, what: str, ask: Callable[[Any], T]) -> T:
        """What the client gives; TrainerError in one sentence where MLflow fails at `what`."""
        from mlflow.exceptions import MlflowException

        try:
            if self._client is None:
                self._client = importlib.import_module("mlflow").MlflowClient(
                    tracking_uri=self.uri, registry_uri=os.environ.get(REGISTRY) or self.uri
                )
            return ask(self._client)
        except TrainerError:
            raise
        except (MlflowException, OSError, ImportError, ValueError) as error:
            raise TrainerError(
                f"The registry at {self.shown} cannot {what} ({_reason(error)}): see that it runs, that this node "
                "reaches it, and that MLflow's variables hold valid credentials."
            ) from None

    def resolve(self, reference: Reference) -> Version:
        """Which version this is now; ConfigError where there is none."""
        return self._version(reference, self._aliases(reference.name))

    def versions(self, name: str) -> list[Version]:
        """All of a model, the oldest first; ConfigError where there is no such model."""
        self._aliases(name)
        return self._search(name)

    def names(self) -> list[str]:
        """All registered models."""
        found = self._pages("list its models", lambda client, at: client.search_registered_models(None, 500, None, at))
        return sorted(each.name for each in found)

    def aliases(self, name: str) -> dict[str, int]:
        """What is known by which alias, of those that this package knows; ConfigError where there is no such model."""
        return {alias: number for alias, number in self._aliases(name).items() if alias in ALIASES}

    def set_alias(self, name: str, alias: str, number: int) -> int | None:
        """Let a version be known by an alias; the number of the one before. A champion is remembered first, so that
        whatever is cut off in between, `rollback` finds the one before the champion that is there.
        """
        before = self.aliases(name).get(alias)
        if alias == CHAMPION:
            known = self._history(name)
            grown = [*known, *([before] if before and before not in known[-1:] else []), number]
            self._set_history(name, [n for n, after in zip(grown, [*grown[1:], None], strict=True) if n != after])
        self.call("set an alias", lambda client: client.set_registered_model_alias(name, alias, str(number)))
        return before

    def rollback(self, name: str) -> tuple[int, int]:
        """Make the champion before the champion again: the numbers of then and now."""
        now = self.aliases(name).get(CHAMPION)
        if now is None:
            raise ConfigError(f"{name} has no champion to go back from: promote a version with `registry promote`.")
        known = self._history(name)
        if now in known:  # later ones were cut off before they became champion
            known = known[: len(known) - known[::-1].index(now)]
            known.pop()
        there = {version.number for version in self._search(name)}
        while known and (known[-1] not in there or known[-1] == now):
            known.pop()
        if not known:
            raise ConfigError(
                f"{name} version {now} is the first champion that is known, or those before it are deleted: promote "
                f"another version with `registry promote {name}@VERSION {CHAMPION}`."
            )
        before = known[-1]
        self.call("set an alias", lambda client: client.set_registered_model_alias(name, CHAMPION, str(before)))
        self._set_history(name, known)
        return now, before

    def create(self, name: str, source: str, run: str, tags: Mapping[str, str], description: str | None) -> Version:
        """A new version of a model, which is made if there is none."""
        if not self.call("look for a model", lambda client: _registered(client, name)):
            self.call("register a model", lambda client: client.create_registered_model(name))
        made = self.call(
            "register a version",
            lambda client: client.create_model_version(
                name, source, run_id=run, tags=dict(tags), description=description, await_creation_for=None
            ),
        )
        return _of(made)

    def upload(self, run: str, path: Path, folder: str) -> None:
        """A file, or all of a folder, into a folder of the run's artefacts."""
        what = "take the model's files"
        if path.is_dir():
            self.call(what, lambda client: client.log_artifacts(run, str(path), folder))
        else:
            self.call(what, lambda client: client.log_artifact(run, str(path), folder))

    def download(self, version: Version, name: str, to: Path) -> Path:
        """One file of a version into the folder `to`; `name` is one that `manifest.is_plain` knows as such."""
        assert name == manifest.FILE or manifest.is_plain(name)
        artefacts: Any = importlib.import_module("mlflow.artifacts")
        said = self.call(
            f"give {name} of {version}",
            lambda _: artefacts.download_artifacts(
                artifact_uri=f"{version.source.rstrip('/')}/{name}", dst_path=str(to), tracking_uri=self.uri
            ),
        )
        path = Path(said)
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(to.resolve()):
            raise manifest.TamperedError(
                f"{version} gives no file for {name}: it is not used; register the model again."
            )
        return path

    def run_of(self, known: str | None, experiment: str, name: str) -> str:
        """The id of a run to keep files in: `known`, where this server has it, or a new one."""

        def ask(client: Any) -> str:
            from mlflow.exceptions import MlflowException

            if known is not None:
                try:
                    return str(client.get_run(known).info.run_id)
                except MlflowException:  # of another server, or deleted
                    pass
            there = client.get_experiment_by_name(experiment)
            number = there.experiment_id if there is not None else client.create_experiment(experiment)
            made = client.create_run(number, run_name=name)
            client.set_terminated(made.info.run_id)
            return str(made.info.run_id)

        return self.call("make a run", ask)

    def artefacts_of(self, run: str) -> str:
        """Where the files of a run are."""
        return str(self.call("find a run", lambda client: client.get_run(run).info.artifact_uri))

    def _aliases(self, name: str) -> dict[str, int]:
        found = self.call("look for a model", lambda client: _registered(client, name))
        if found is None:
            raise ConfigError(
                f"The registry at {self.shown} has no model {name!r}: `gaudi3-train registry list` shows those there "
                "are."
            )
        return {str(alias): int(number) for alias, number in found.aliases.items()}

    def _version(self, reference: Reference, aliases: Mapping[str, int]) -> Version:
        alias = reference.alias
        number = aliases.get(alias) if alias is not None else int(reference.which)
        if number is None:
            raise ConfigError(
                f"{reference.name} has no {alias}: promote a version with `gaudi3-train registry promote "
                f"{reference.name}@VERSION {alias}`."
            )
        found = self.call("find a version", lambda client: _absent_is_none(client, reference.name, number))
        if found is None:
            raise ConfigError(
                f"{reference.name} has no version {number}: `gaudi3-train registry list {reference.name}` shows those "
                "there are."
            )
        return _of(found)

    def _search(self, name: str) -> list[Version]:
        wanted = f"name='{name}'"
        found = self._pages("list versions", lambda client, at: client.search_model_versions(wanted, 500, None, at))
        return sorted(map(_of, found), key=lambda version: version.number)

    def _pages(self, what: str, ask: Callable[[Any, str | None], Any]) -> list[Any]:
        """All that a search gives, page by page; `ask` is given where a page begins."""
        found: list[Any] = []
        at: str | None = ""
        while at is not None:
            page = self._page(what, ask, at or None)
            found += page
            at = page.token or None
        return found

    def _page(self, what: str, ask: Callable[[Any, str | None], Any], at: str | None) -> Any:
        return self.call(what, lambda client: ask(client, at))

    def _history(self, name: str) -> list[int]:
        found = self.call("look for a model", lambda client: _registered(client, name))
        text = found.tags.get(HISTORY, "") if found is not None else ""
        return [int(number) for number in re.findall(r"\d{1,9}", text)]

    def _set_history(self, name: str, numbers: list[int]) -> None:
        text = ",".join(map(str, numbers[-KEPT:]))
        self.call("remember champions", lambda client: client.set_registered_model_tag(name, HISTORY, text))


def without_credentials(uri: str) -> str:
    """An address without what stands before its host.

    >>> without_credentials("https://me:secret@registry:5000/x")
    'https://registry:5000/x'
    """
    try:
        parts = urlsplit(uri)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else uri
    except ValueError:
        return "the given address"


def _registered(client: Any, name: str) -> Any:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_registered_model(name)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise


def _absent_is_none(client: Any, name: str, number: int) -> Any:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version(name, str(number))
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise


def _of(version: Any) -> Version:
    return Version(str(version.name), int(version.version), str(version.source), dict(version.tags))


def _reason(error: BaseException) -> str:
    """The first line of it; addresses in it without credentials."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
    return re.sub(r"//[^/@\s]*@", "//", line)
