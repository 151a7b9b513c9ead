#!/usr/bin/env bash
# kubeflow-trainer-api 2.3.0: a TrainJob as Kubeflow Trainer 2.0 takes it is read without an error, and parts of it are gone.
#
# `podTemplateOverrides` of 2.0 and 2.1 became `runtimePatches`, and a claim of Kubernetes 1.30 has another form today. The models
# take both and drop what they do not know: the job loses its overrides, and the pod a claim that is empty. Types are checked.
set -euo pipefail
python=${PYTHON:-python3.12}
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; cd "$folder"
"$python" -m venv env
env/bin/pip install --quiet kubeflow-trainer-api==2.3.0
cat > look.py <<'PY'
import json
import kubeflow_trainer_api.models as models

job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "big"},
       "spec": {"runtimeRef": {"name": "torch-distributed"},
                "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "mine"}}]}}
back = json.loads(models.TrainerV1alpha1TrainJob.from_dict(job).to_json())
print("overrides:", back["spec"].get("podTemplateOverrides"))
claim = {"name": "cards", "source": {"resourceClaimTemplateName": "eight"}}
pod = {"containers": [{"name": "node"}], "resourceClaims": [claim]}
print("claim:", json.loads(models.IoK8sApiCoreV1PodSpec.from_dict(pod).to_json())["resourceClaims"])
job["spec"]["trainer"] = {"numNodes": "4"}
try:
    models.TrainerV1alpha1TrainJob.from_dict(job)
except ValueError as error:
    print("numNodes as a text:", type(error).__name__)
PY
env/bin/python look.py | tee seen
diff seen - <<'TXT'
overrides: None
claim: [{'name': 'cards'}]
numNodes as a text: ValidationError
TXT
