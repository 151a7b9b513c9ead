# make demo   two simulated Gaudi 3 nodes, and site.yml on them to a finished training run
# make test   everything that proves the project
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(CURDIR)/.cache/tools
export PATH := $(CURDIR)/$(BIN):$(PATH):$(TOOLS)/usr/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# From a list with hashes, and nothing that a build would fetch without.
INSTALL := pip install --quiet --require-hashes --only-binary=:all:
# Without bytecode every start of ansible compiles itself again.
unexport PYTHONDONTWRITEBYTECODE

CLUSTER ?= demo
NODES ?= 2
export GAUDI3_SIMULATOR_CLUSTER := $(CLUSTER)

.PHONY: demo up down status prepare image test lint tree hpu unit plays simulator-test device-test deploy-test trainer-test coverage coverage-raise \
	terraform-test terraform-registry proof-kill-matrix proof-families proof-corpora proof-batch-warmup proof-provisioning proof-quickstart proof-mutants proof-hsdp proof-anomalies proof-health-noise proof-healing proof-healing-race proof-memory proof-batch proof-compression proof-tuner proof-strictness proof-operators proof-core-matrix proof-node-answers proof-node-jobs proof-molecule torch-matrix torch-suite \
	proof-os-matrix os-matrix strictness screenshots contract system molecule-test molecule sanity artifact build sign audit bench clean help

help:
	@sed -n 's/^# //p;/^PYTHON/q' Makefile

demo: up
	ansible-playbook site.yml

up: $(VENV)/.controller
	gaudi3-simulator prepare
	gaudi3-simulator up --name $(CLUSTER) --nodes $(NODES)

down: $(VENV)/.controller
	gaudi3-simulator down --name $(CLUSTER)

status: $(VENV)/.controller
	gaudi3-simulator status

$(VENV)/.controller: requirements/controller.txt simulator/pyproject.toml deploy/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m $(INSTALL) -r requirements/controller.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e simulator -e deploy
	@touch $@

$(VENV)/.dev: $(VENV)/.controller requirements/dev.txt requirements/torch.txt requirements/trainer.txt requirements/extras.txt tests/suite/coveragerc
	$(BIN)/python -m $(INSTALL) -r requirements/dev.txt
	$(BIN)/python -m $(INSTALL) $$($(BIN)/python -c 'from gaudi3_simulator.image import torch_arguments; print(*torch_arguments())')
	$(BIN)/python -m $(INSTALL) -r requirements/trainer.txt
	$(BIN)/python -m $(INSTALL) -r requirements/extras.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e trainer
	@# Coverage starts in every process of the tests, and its plugin has to be found there.
	@echo $(CURDIR)/tests/suite/coverage_plugins > $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/a0_coverage_plugins.pth
	@touch $@

# promtool checks the alert rules. Unpacked, not installed: the package would start a Prometheus on this machine.
$(TOOLS)/usr/bin/promtool:
	mkdir -p $(TOOLS)
	cd $(TOOLS) && { apt-get -qq download prometheus || { apt-get -qq update && apt-get -qq download prometheus; }; }
	cd $(TOOLS) && dpkg -x prometheus_*.deb .

# Tools that cannot share the tests' environment, each in one of its own: checkov, pip-audit (audit), MLflow's tracking server (the
# trainer itself needs mlflow-skinny alone), the linter of documentation (docs, whose Sphinx needs another docutils), and what
# speaks Terraform's plugin protocol in the place of a cloud's provider (standin, which needs another protobuf).
.cache/%/ready: requirements/%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m $(INSTALL) -r $<
	@touch $@

# What the tests need of downloads, compiled code and the node image; its cost is not the tests'.
prepare: $(VENV)/.dev $(TOOLS)/usr/bin/promtool .cache/checkov/ready .cache/mlflow/ready .cache/docs/ready .cache/standin/ready hpu image

image: $(VENV)/.controller
	gaudi3-simulator prepare

# Every part below, three at a time, and what each one cost; it ends with the sum of what passed and failed.
test:
	$(MAKE) --jobs=3 prepare
	$(BIN)/python tests/suite/run.py --make "$(MAKE)"

# Writes what each file is for into CONTRIBUTING.md.
tree: $(VENV)/.dev
	$(BIN)/python tests/suite/tree.py

lint: $(VENV)/.dev .cache/docs/ready
	ruff check .
	ruff format --check .
	mypy
	yamllint --strict .
	ansible-lint
	antsibull-changelog lint
	.cache/docs/bin/antsibull-docs lint-collection-docs --plugin-docs .

# The simulated hpu device in a folder for PYTHONPATH; it is never installed where it would change every `import torch`.
HPU := .cache/hpu
HPU_SOURCES := $(addprefix simulator/torch/,setup.py pyproject.toml) $(shell find simulator/torch/csrc simulator/torch/src -name '*.cpp' -o -name '*.h' -o -name '*.py')

hpu: $(HPU)/.built

$(HPU)/.built: $(HPU_SOURCES) $(VENV)/.dev
	@command -v g++ >/dev/null || { echo "The simulated hpu device is built with g++, which is missing: apt-get install g++ python3-dev"; exit 1; }
	rm -rf $(HPU).new simulator/torch/build/lib* simulator/torch/build/bdist*
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target $(HPU).new ./simulator/torch
	rm -rf $(HPU)
	mv $(HPU).new $(HPU)
	@touch $@

# Under coverage, into .cache/coverage/AREA.
covered = rm -rf $(CURDIR)/.cache/coverage/$(1) && mkdir -p $(CURDIR)/.cache/coverage/$(1) && \
	GAUDI3_ROOT=$(CURDIR) GAUDI3_COVERAGE=$(CURDIR)/.cache/coverage/$(1)/data \
	coverage run --rcfile=$(CURDIR)/tests/suite/coveragerc -m pytest -q

# Coverage traces the tests of plugins alone, which reach the floor of plugins; tracing makes a test half as dear again.
unit: $(VENV)/.dev $(TOOLS)/usr/bin/promtool
	$(call covered,plugins) tests/unit/plugins
	pytest -q tests/unit tests/monitoring tests/suite --ignore tests/unit/plugins

# The real playbooks and roles over local connections: no root, no containers.
plays: $(VENV)/.dev
	pytest -q tests/plays

simulator-test: $(VENV)/.dev .cache/standin/ready
	cd simulator && $(call covered,simulator)

device-test: $(VENV)/.dev hpu
	cd simulator/torch && pytest -q
	$(BIN)/python -m pytest -q tests/contract

deploy-test: $(VENV)/.dev
	cd deploy && $(call covered,deploy)

trainer-test: $(VENV)/.dev hpu .cache/mlflow/ready
	cd trainer && $(call covered,trainer)

# The coverage that the parts above reached, against its floors.
coverage: $(VENV)/.dev
	$(BIN)/python tests/suite/floors.py check

coverage-raise: $(VENV)/.dev
	$(BIN)/python tests/suite/floors.py raise

# Proofs: what takes too long for `make test`, which runs a sample of each. A proof that was interrupted goes on where it
# was; once whole, it writes its table into proofs/.
# Every signal, to every process, in every phase of a job; about ten minutes.
proof-kill-matrix: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=kill-matrix pytest -v -m "proof or not proof" tests/test_kill_matrix.py tests/test_hung_cards.py

# A tiny model of every family, trained, saved, resumed, exported and read in parts; two minutes.
proof-families: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=families pytest -v -m "proof or not proof" tests/test_families.py

# Five hundred corpora in every form, compression and state of damage, each read for what it is or refused; three minutes.
proof-corpora: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=corpora pytest -v -m "proof or not proof" tests/test_corpora.py

# A job whose copies are each split over processes (HSDP), resumed exactly and on half as many; a minute.
proof-hsdp: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=hsdp pytest -v -m proof tests/test_fit_sharded.py

# Critical batches of a tiny model, measured, and what a batch-size warm-up gains over three seeds; ten minutes.
proof-batch-warmup: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=batch-warmup pytest -v -m "proof or not proof" tests/test_batch_warmup.py

# Seeded traces with anomalies of every kind, and healthy ones; a minute.
proof-anomalies: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=anomalies pytest -v -m "proof or not proof" tests/test_anomalies.py

# A thousand boots of nodes whose sensors, counters and tools misbehave: no verdict against a sound one; five minutes.
proof-health-noise: $(VENV)/.dev
	GAUDI3_PROOF=health-noise pytest -v -m "proof or not proof" tests/unit/plugins/module_utils/test_health_noise.py

# Fifty faults during a real training on simulated nodes: the right node is taken out and not a loss differs; half an hour.
proof-healing: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=healing pytest -v -m "proof or not proof" -k "not race" tests/test_healing.py

# A training under a fault a minute against an undisturbed one; ten minutes.
proof-healing-race: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=healing-race pytest -v -m proof -k race tests/test_healing.py

# Predicted memory against the allocator of the simulated device, over models, precisions and strategies; five minutes.
proof-memory: $(VENV)/.dev hpu
	cd trainer && GAUDI3_PROOF=memory pytest -v -m "proof or not proof" tests/test_memory_proof.py

# The batch that is found, against the largest that fits and other finders; fifteen minutes.
proof-batch: $(VENV)/.dev hpu
	cd trainer && GAUDI3_PROOF=batch pytest -v -m "proof or not proof" tests/test_batch_proof.py tests/test_batch_job.py

# Jobs with compressed gradients and without, over several seeds; two minutes.
proof-compression: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=compression pytest -v -m "proof or not proof" tests/test_compression.py

# The search of a job's settings: a known optimum, kills, and the demo's model on this machine; ten minutes.
proof-tuner: $(VENV)/.dev
	cd trainer && GAUDI3_PROOF=tuner pytest -v -m "proof or not proof" tests/test_tuner_proof.py

# gaudi3-deploy up, run, replace and down, killed at many instants and run again.
proof-provisioning: $(VENV)/.dev
	GAUDI3_PROOF=provisioning pytest -v -m "proof or not proof" tests/terraform/test_deploy_kills.py

# The documented quick starts, from the command to a finished job on simulated nodes behind a jump host.
proof-quickstart: $(VENV)/.dev .cache/standin/ready
	GAUDI3_PROOF=quickstart pytest -v -m "proof or not proof" tests/terraform/test_quickstart.py tests/system/test_quickstart.py

# One line changed at a time, each of which a test must notice.
proof-mutants: $(VENV)/.dev
	GAUDI3_PROOF=mutants pytest -v -m "proof or not proof" tests/suite/test_mutants.py

# The collection on every ansible-core that it accepts, each installed into an environment of its own; twelve minutes.
CORES := 2.17 2.18 2.20 2.21
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
proof-core-matrix: $(VENV)/.dev $(CORES:%=.cache/core-matrix/%/.ready)
	GAUDI3_PROOF=core-matrix pytest -v -m "proof or not proof" tests/suite/test_core_matrix.py

# By the first Python that can have it; what the tests need besides is taken from the tests' own environment.
.cache/core-matrix/%/.ready: | $(VENV)/.dev
	rm -rf $(@D)
	mkdir -p $(@D)
	$(BIN)/python requirements/pick.py requirements/versions.pins ansible-core==$*. > $(@D)/core.txt
	$(BIN)/python requirements/pick.py requirements/controller.txt jinja2 markupsafe pyyaml cryptography cffi pycparser packaging \
		> $(@D)/beside.txt
	for python in $(PYTHONS); do \
		command -v $$python >/dev/null && $$python -m venv $(@D) 2>/dev/null && \
		$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/core.txt -r $(@D)/beside.txt 2>/dev/null && \
		$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' > $$(echo $(@D)/lib/python3*/site-packages)/tests.pth && break; \
		rm -rf $(@D)/bin $(@D)/lib; \
	done
	touch $@

# Two thousand changed answers of hostile nodes beside good ones, on the oldest, the tests' own and the newest ansible-core: an hour and a half.
proof-node-answers: $(VENV)/.dev .cache/core-matrix/2.17/.ready .cache/core-matrix/2.21/.ready
	for python in .cache/core-matrix/2.17/bin/python .cache/core-matrix/2.21/bin/python $(BIN)/python; do \
		export GAUDI3_PROOF=node-answers PATH="$(CURDIR)/$$(dirname $$python):$$PATH"; \
		$$python -m pytest -v -m "proof or not proof" tests/plays/test_node_answers.py || exit 1; \
	done

# One rule of simulator/strictness.yml turned round at a time, each of which a test must notice.
proof-strictness: $(VENV)/.dev hpu
	GAUDI3_PROOF=strictness pytest -v -m "proof or not proof" tests/suite/test_strictness.py

# Every operator of torch's own database on the simulated device, of which the tests draw 24; three minutes.
proof-operators: $(VENV)/.dev hpu
	cd simulator/torch && GAUDI3_PROOF=operators pytest -v -m "proof or not proof" tests/test_operator_database.py

# The trainer on the supported versions of torch, Lightning and Python. The launcher runs over the torchrun of each torch
# that Intel's releases ship, from wheels of which only the Python files are used; those for arm64 are the smallest. The tests
# of launcher, interruption, checkpoint and resume run on the oldest and the newest torch.
TORCH_WHEELS := .cache/torch-wheels
OLDEST_TORCH := 2.9.1
torch-matrix: $(VENV)/.dev .cache/torch-matrix/$(OLDEST_TORCH)/.ready
	mkdir -p $(TORCH_WHEELS)
	for version in $(OLDEST_TORCH) 2.10.0 2.11.0; do \
		ls $(TORCH_WHEELS)/torch-$$version-*.whl >/dev/null 2>&1 || { \
			$(BIN)/python requirements/pick.py requirements/versions.pins torch==$$version > $(TORCH_WHEELS)/torch.txt && \
			pip download --quiet --require-hashes --no-deps --only-binary=:all: --python-version=3.12 \
				--platform=manylinux_2_28_aarch64 --dest=$(TORCH_WHEELS) -r $(TORCH_WHEELS)/torch.txt; } || exit 1; \
	done
	$(BIN)/python requirements/pick.py requirements/versions.pins lightning==2.6.0 > $(TORCH_WHEELS)/lightning.txt
	ls $(TORCH_WHEELS)/lightning-2.6.0-*.whl >/dev/null 2>&1 || \
		pip download --quiet --require-hashes --no-deps --only-binary=:all: --dest=$(TORCH_WHEELS) -r $(TORCH_WHEELS)/lightning.txt
	cd trainer && GAUDI3_PROOF=torch-matrix pytest -v -m "proof or not proof" tests/test_torch_matrix.py

# The trainer's whole suite with the oldest and the newest torch of Intel's releases, and with the newest Python: hours in all, and
# gigabytes of downloads for each. What was interrupted goes on. `make torch-matrix` puts the results into its table.
TORCH_SUITES := $(OLDEST_TORCH) 2.11.0 python-3.13
torch-suite: $(foreach name,$(TORCH_SUITES),.cache/torch-matrix/$(name)/.ready)
	for name in $(TORCH_SUITES); do $(BIN)/python trainer/tests/suite_by_file.py run $$name || failed=1; done; test -z "$$failed"

.cache/torch-matrix/%/.ready: requirements/trainer.txt | $(VENV)/.dev
	$(BIN)/python trainer/tests/suite_by_file.py prepare $*
	touch $@

# site.yml on every operating system, place and card that nodes are simulated with: as root, one cluster after another.
# Builds the node images that are missing.
proof-os-matrix: $(VENV)/.dev
	gaudi3-simulator prepare
	GAUDI3_PROOF=os-matrix pytest -v -s -m "proof or not proof" tests/system/test_os_matrix.py

os-matrix: proof-os-matrix

# Programs of other people on the simulated device and node, and docs/contract.md. Repositories are read from the folder
# CONTRACT_SOURCES, laid out as OWNER/NAME. ROWS= runs some rows alone. A row that held with the same sources is not run again.
contract: $(VENV)/.dev hpu .cache/contract/frameworks/.ready .cache/contract/optimum/.ready
	$(BIN)/python -m tests.contract.run $(ROWS)

.cache/contract/frameworks/.ready: requirements/contract.txt
.cache/contract/optimum/.ready: requirements/contract-optimum.txt
# Over the checkout's environment, which has torch; what is pinned here comes first.
.cache/contract/%/.ready: | $(VENV)/.dev
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "checkout.pth").write_text("import site; site.addsitedir(\"" + "$(CURDIR)/$(VENV)/lib/" + pathlib.Path(sysconfig.get_path("purelib")).parent.name + "/site-packages\")\n")'
	$(BIN)/python requirements/pick.py requirements/contract.txt wheel > $(@D)/wheel.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/wheel.txt
	DS_BUILD_OPS=0 $(@D)/bin/python -m pip install --quiet --require-hashes --no-deps --no-build-isolation -r $(filter requirements/%,$^)
	@touch $@

# Pictures of Prometheus' pages in docs/, from the cluster after `make demo`; four minutes. Needs chromium.
screenshots: $(VENV)/.controller
	$(BIN)/python tests/monitoring/screenshots.py

# Hand the rules of simulator/strictness.yml to the simulated node and the simulated device.
strictness: $(VENV)/.dev
	$(BIN)/python tests/suite/strictness.py

# Each root and module with the newest provider that its range admits, from the registry.
terraform-registry:
	set -e; for folder in aws azure gcp ibm onprem modules/aws modules/azure modules/gcp modules/ibm modules/onprem; do \
		echo "terraform/$$folder"; \
		terraform -chdir=terraform/$$folder init -backend=false -input=false -upgrade; \
		terraform -chdir=terraform/$$folder validate; \
		case $$folder in modules/*) terraform -chdir=terraform/$$folder test;; esac; \
	done

# The Terraform tree with the real terraform, AWS played by moto; skipped, by name, where terraform is missing.
terraform-test: $(VENV)/.dev .cache/checkov/ready .cache/standin/ready
	pytest -q tests/terraform

# Pinned packages that an advisory is known for. It asks a service over the network, so that no test does. Advisories that do
# not concern this project are in requirements/advisories; torch is asked for as torch-cuda.txt names it, as the service knows
# no local versions.
audit: .cache/audit/ready
	failed=; for list in $(filter-out requirements/torch.txt,$(wildcard requirements/*.txt)); do \
		.cache/audit/bin/pip-audit --disable-pip --require-hashes --strict -r $$list \
			$$(sed -n 's/^\([A-Z][A-Za-z0-9-]*\).*/--ignore-vuln \1/p' requirements/advisories) || failed=1; \
	done; test -z "$$failed"

# Simulated nodes and the whole site.
system: $(VENV)/.dev
	gaudi3-simulator prepare
	pytest tests/system --ignore tests/system/test_molecule.py --ignore tests/system/test_sanity.py --ignore tests/system/test_artifact.py

# A job that loses processes and nodes, on booted nodes: a user's script, the inventory's, with a spare node, healed. Ten minutes.
proof-node-jobs: $(VENV)/.dev
	gaudi3-simulator prepare
	GAUDI3_PROOF=node-jobs pytest -v -m "proof or not proof" tests/system/test_own_script.py tests/system/test_site_converged.py tests/system/test_healed_job.py tests/system/test_spare.py

# Every molecule scenario, as a test; ten minutes.
proof-molecule: $(VENV)/.dev
	gaudi3-simulator prepare
	GAUDI3_PROOF=molecule pytest -v -m "proof or not proof" tests/system/test_molecule.py

# Some molecule scenarios, others with each commit: one from nothing, one end to end, and four of roles.
molecule-test: $(VENV)/.dev
	gaudi3-simulator prepare
	pytest tests/system/test_molecule.py

molecule: $(VENV)/.dev
	gaudi3-simulator prepare
	molecule test --all

sanity: $(VENV)/.dev
	pytest tests/system/test_sanity.py

artifact: $(VENV)/.dev
	pytest tests/system/test_artifact.py

# The collection, from what git tracks and the same bytes each time, and beside it what is in it and what it is tested with.
ARTIFACT = gaudi3-scale-$(shell sed -n 's/^version: //p' galaxy.yml).tar.gz
build: $(VENV)/.controller
	$(BIN)/python requirements/artifact.py . $(ARTIFACT)
	$(BIN)/python requirements/sbom.py $(ARTIFACT)

# A detached signature of the built collection, for `ansible-galaxy collection verify`: SECURITY.md. It signs the list of files with
# their hashes. KEY= is a name or fingerprint that gpg knows.
sign:
	@test -n "$(KEY)" || { echo "KEY is not set: give the fingerprint of the key to sign with, as in make sign KEY=0123ABCD"; exit 1; }
	@test -f "$(ARTIFACT)" || { echo "$(ARTIFACT) is not there: run make build first"; exit 1; }
	tar -xOf "$(ARTIFACT)" MANIFEST.json | gpg --batch --yes --armor --detach-sign --local-user "$(KEY)" --output "$(ARTIFACT).asc" -

bench: $(VENV)/.dev hpu
	gaudi3-simulator prepare
	$(BIN)/python benchmarks/module_cpu.py
	$(BIN)/python benchmarks/health_cpu.py
	$(BIN)/python benchmarks/trainer_step.py
	$(BIN)/python benchmarks/checkpoint_stall.py
	$(BIN)/python benchmarks/resume.py
	$(BIN)/python benchmarks/loader.py
	PYTHONPATH=$(HPU) $(BIN)/python benchmarks/hpu_simulator.py
	$(BIN)/python benchmarks/site_cpu.py
	$(BIN)/python benchmarks/failure_told.py

clean:
	@if [ -x $(BIN)/gaudi3-simulator ]; then $(BIN)/gaudi3-simulator clean; fi
	rm -rf simulator/torch/build $(VENV) .cache .ansible .mypy_cache .ruff_cache .pytest_cache dist gaudi3-scale-*.tar.gz* gaudi3-scale-*.cdx.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find trainer simulator deploy -name '*.egg-info' -type d -prune -exec rm -rf {} +
