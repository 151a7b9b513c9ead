"""MLflow's tracking server over a SQLite file, as one process: `mlflow server` starts three and costs twice as much.

python mlflow_server.py sqlite:////path/to.db /path/of/artifacts PORT
"""

from __future__ import annotations

import os
import sys

os.environ["_MLFLOW_SERVER_FILE_STORE"] = sys.argv[1]  # what `mlflow server` sets for the processes that it starts
os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"] = "mlflow-artifacts:/"
os.environ["_MLFLOW_SERVER_ARTIFACT_DESTINATION"] = sys.argv[2]
os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"

from mlflow.server import app
from werkzeug.serving import make_server

make_server("127.0.0.1", int(sys.argv[3]), app, threaded=True).serve_forever()
