"""Predictions for a process that is in a process group, by one child: `python -m gaudi3_scale.batch.oracle`.

A sharded step is predicted in a process group of its own, which a running job cannot make.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import TracebackType

from gaudi3_scale.config import Config
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.planning.peak import predict_peak


class UnpredictableError(TrainerError):
    """The step does what fake tensors cannot."""


class Oracle:
    """Answers how many bytes a step of the job takes; a context, which ends its child."""

    def __init__(self, config: Config, world_size: int, device: str) -> None:
        self._config = config
        self._world_size = world_size
        self._device = device
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Oracle:
        """Nothing starts before the first question."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def peak(self, batch: int) -> int:
        """Bytes for this many samples. Raises UnpredictableError, and ConfigError where such a job cannot be."""
        if self._config.train.strategy == "habana_fsdp" and self._world_size > 1:
            return self._asked(batch)
        return _answer(self._config, batch, self._world_size, self._device)

    def _asked(self, batch: int) -> int:
        if self._child is None:
            alone = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
            self._child = subprocess.Popen(
                [sys.executable, "-m", "gaudi3_scale.batch.oracle"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**alone, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"},
            )
            self._tell({"config": self._config.model_dump(mode="json", exclude_unset=True)})
        self._tell({"batch": batch, "world_size": self._world_size, "device": self._device})
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process that predicts it ended"}
        if "error" in answer:
            raise UnpredictableError(answer["error"])
        return int(answer["bytes"])

    def _tell(self, value: object) -> None:
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(value) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise UnpredictableError("the process that predicts the memory of a step ended") from None


def _answer(config: Config, batch: int, world_size: int, device: str) -> int:
    try:
        return predict_peak(config, batch, world_size=world_size, device=device).bytes
    except TrainerError:
        raise
    except Exception as error:  # whatever an operation without a rule for fake tensors raises
        words = (str(error).strip() or "no message").splitlines()[0]
        raise UnpredictableError(f"{type(error).__name__}: {words}") from error


def main() -> int:
    """Answer questions until there are no more."""
    config = Config.model_validate(json.loads(sys.stdin.readline())["config"])
    for line in sys.stdin:
        try:
            asked = json.loads(line)
            answer: dict[str, object] = {"bytes": _answer(config, asked["batch"], asked["world_size"], asked["device"])}
        except TrainerError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
