"""`python -m gaudi3_scale.planning.child`: one prediction, asked for and answered in JSON."""

from __future__ import annotations

import json
import sys

from gaudi3_scale.config import Config
from gaudi3_scale.errors import TrainerError
from gaudi3_scale.planning.peak import as_json, predict_peak


def main() -> int:
    """Read what is asked for from standard input; a sentence on standard error where there is no answer."""
    asked = json.load(sys.stdin)
    config = Config.model_validate(asked.pop("config"))
    try:
        print(as_json(predict_peak(config, asked.pop("micro_batch"), **asked)))
    except TrainerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
