# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
PIP_TORCH := $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
export OMP_NUM_THREADS ?= 1
# Nothing is compiled while it is installed. So it is compiled once and kept, also where the environment forbids it: to
# import torch anew costs each of the many processes of tests and benchmarks 3 s of the processor more.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(abspath build/pycache)

.PHONY: sb3-suite sb3-scripts bench-sb3 setup client browser emulator demo test check words coverage golden test-ray distance docs native compilers sanitize sanitized wheels peers bench bench-learning bench-speed \
	bench-zoo bench-heatmap bench-shapes bench-paths bench-clone bench-kills bench-mujoco bench-record bench-doctor bench-explore bench-supervise bench-selfplay bench-mappo bench-tools bench-town bench-prompts bench-serve bench-scale bench-graph bench-studio soak matrix studio bench-lm serve-page bench-tune campaign-serve campaign campaign-long clean

KERNEL := CMakeLists.txt $(wildcard src/surefoot/native/src/* src/surefoot/native/include/*)

$(VENV)/.ready: pyproject.toml constraints.txt $(KERNEL)
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
	$(PIP) $(PIP_TORCH) torch
	$(PIP) -e ".[dev]"
	touch $@

setup: $(VENV)/.ready  ## create .venv with the `surefoot` command in it

demo: setup  ## train CartPole before your eyes, then play it
	$(BIN)/python examples/demo.py

PACKAGES := clients/typescript tests/e2e/browser

client: $(PACKAGES:%=%/node_modules/.package-lock.json)  ## what the TypeScript client and the browser tests need

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund --loglevel=error
	touch $@

browser:  ## a Chromium for the tests in a browser
	$(PYTHON) scripts/browser.py

# After the browser: two apt-get cannot run at once.
emulator: browser  ## qemu-user, with which `make test` runs the kernel of aarch64
	$(PYTHON) scripts/compilers.py --emulator

sanitized:  ## the kernel with sanitizers in it, for `make sanitize`; only what changed
	$(PYTHON) scripts/sanitize.py --build

test:  ## everything that must hold: lint, types, contracts, all tests
	$(MAKE) --no-print-directory -j 2 setup client emulator sanitized
	$(BIN)/python scripts/test_all.py

check: setup  ## seconds, before every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright -p pyproject.toml
	$(BIN)/lint-imports
	$(BIN)/python scripts/dead_code.py
	$(BIN)/python scripts/words.py
	$(BIN)/python -m pytest tests/unit tests/property tests/golden -n 2

words: setup  ## words that are not plain technical English, with the better word beside each; the list is scripts/words.yaml
	$(BIN)/python scripts/words.py $(ARGS)

test-ray:  ## the same tests of backends and searches, on Ray: it has an environment of its own, .venv-ray
	$(MAKE) --no-print-directory setup VENV=.venv-ray
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,ray,ray-tune]"
	.venv-ray/bin/python -m pytest tests/unit/scale tests/e2e/test_tune_ray.py $(ARGS)

coverage: setup  ## branch coverage; at least 95 % in core, data, learn
	$(BIN)/python scripts/coverage.py

golden: setup  ## rewrite the golden digits; say why in the commit
	$(BIN)/python tests/golden/test_golden.py --rewrite

distance: setup  ## lines to read from the world to the weights
	$(BIN)/python scripts/distance.py

docs: setup  ## the site, in site/
	$(BIN)/mkdocs build --strict --quiet

native:  ## after a change in C: build what changed and replace the module of the editable install
	cmake -S . -B build/native -DPython_EXECUTABLE=$(abspath $(BIN)/python) >/dev/null
	cmake --build build/native --parallel
	cmake --install build/native --prefix $$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))")
	touch $(VENV)/.ready

compilers: setup  ## the kernel with GCC and Clang for Linux, macOS and Windows, x86-64 and aarch64 (runs with qemu-user), and exported policies, also on a Cortex-M4
	$(BIN)/python scripts/compilers.py --module $(ARGS)
	$(BIN)/python scripts/c_policies.py

sanitize: setup  ## the kernel's tests with AddressSanitizer and UndefinedBehaviorSanitizer
	$(BIN)/python scripts/sanitize.py

wheels: setup  ## sdist and wheel in dist/, looked into and tried; also a build without a compiler
	$(BIN)/python scripts/wheels.py
	$(BIN)/python scripts/wheels.py --without-compiler

bench: bench-speed bench-kills  ## the quick benchmarks

peers:  ## one environment per peer to measure against: Stable-Baselines3, JAX, TRL, rl_games, RLtools
	TORCH_INDEX=$(TORCH_INDEX) $(PYTHON) benchmarks/peers.py

bench-learning: setup  ## ≥ 5 seeds of every task against its bar; hours, see --help
	$(BIN)/python benchmarks/learning.py

bench-speed: setup  ## W1 to W5 against the peers that are there; PUREJAXRL=DIR, CLEANRL=DIR and RLTOOLS=DIR add these, ARGS="--only W1" picks
	$(BIN)/python benchmarks/speed.py $(if $(PUREJAXRL),--purejaxrl $(PUREJAXRL)) $(if $(CLEANRL),--cleanrl $(CLEANRL)) $(if $(RLTOOLS),--rltools-source $(RLTOOLS)) $(ARGS)
	$(BIN)/python benchmarks/speed_chart.py
	$(BIN)/python benchmarks/tables.py

sb3-suite: setup  ## Stable-Baselines3's and sb3-contrib's own tests; SB3=DIR and CONTRIB=DIR are copies of their repositories, needs pandas
	$(BIN)/python benchmarks/sb3_suite.py $(if $(SB3),--sb3 $(SB3)) $(if $(CONTRIB),--contrib $(CONTRIB)) $(ARGS)

sb3-scripts: setup  ## other people's scripts with the import changed; REPOSITORIES=DIR has copies as OWNER/NAME, ARGS='--python …'
	$(BIN)/python benchmarks/sb3_scripts.py $(REPOSITORIES) $(ARGS)

bench-sb3: setup  ## learning curves and CPU time of one script with SB3 and with surefoot.sb3; needs `make peers`
	$(BIN)/python benchmarks/sb3_curves.py $(ARGS)

bench-zoo: setup  ## every MLP entry of RL Zoo's PPO settings beside SB3; ZOO=FILE is its hyperparams/ppo.yml; needs `make peers`
	$(BIN)/python benchmarks/zoo.py $(ZOO) $(ARGS)
	$(BIN)/python benchmarks/tables.py

bench-heatmap: setup  ## one update over widths, depths, observations, minibatches and envs: kernel, torch, SB3
	$(BIN)/python benchmarks/heatmap.py $(ARGS)

bench-paths: setup  ## the kernel learns what the torch path learns: 10 seeds of 3 envs, both ways
	$(BIN)/python benchmarks/paths.py $(ARGS)

bench-shapes: setup matrix bench-explore bench-selfplay bench-mappo bench-supervise  ## what policies of every shape learn, and how fast; over an hour
	$(BIN)/python benchmarks/policies.py $(ARGS)
	$(BIN)/python benchmarks/learning.py LunarLander-v3

matrix: setup  ## every legal policy trained to its known answer
	$(BIN)/python benchmarks/matrix.py --out benchmarks/results/matrix.json $(ARGS)

bench-clone: setup  ## cloning alone, PPO from a clone, PPO from scratch: env steps until the task is solved
	$(BIN)/python benchmarks/clone.py $(ARGS)

bench-explore: setup  ## the mazes: plain PPO, RND, ICM, and a manager with a worker; 5 seeds each, about 12 minutes
	$(BIN)/python benchmarks/explore.py
	$(BIN)/python benchmarks/hierarchy.py

bench-record: setup  ## what the record costs a run, how fast it is validated, how soon watch reacts
	$(BIN)/python benchmarks/record.py $(ARGS)

bench-doctor: setup  ## faults put into runs on purpose: which of them the doctor finds and names, and what it says of healthy runs
	$(BIN)/python benchmarks/doctor.py $(ARGS)
	$(BIN)/python benchmarks/doctor_act.py --seeds 2

bench-mujoco: setup  ## MuJoCo's tasks in C beside Gymnasium's envs and mj_step alone; training HalfCheetah
	$(BIN)/python benchmarks/mujoco_worlds.py $(ARGS)

bench-kills: setup  ## 60 kills while saving, 1,000 bit flips, 200 truncations
	$(BIN)/python benchmarks/kills.py

bench-supervise: setup  ## 30 kills and 10 stops of the workers of a training
	$(BIN)/python benchmarks/supervise.py $(ARGS)

bench-lm: setup  ## language models: the known optimum, real weights, TRL 1.12 beside; hours, HH=FILE adds hh-rlhf; goes on where it was stopped
	$(BIN)/python benchmarks/lm/optimum.py
	$(BIN)/surefoot lm get smollm2
	$(BIN)/surefoot lm get minilm
	$(BIN)/python benchmarks/lm/rule.py
	$(BIN)/python benchmarks/lm/sentiment.py
	$(BIN)/python benchmarks/lm/reward_cv.py $(if $(HH),--hh $(HH))
	$(BIN)/python benchmarks/lm/constitution.py
	$(BIN)/python benchmarks/lm/curves.py
	$(BIN)/python benchmarks/lm/speed.py $(ARGS)
	$(BIN)/python benchmarks/tables.py

bench-selfplay: setup  ## Connect Four by self-play: the last policy against each of its ancestors
	$(BIN)/python benchmarks/selfplay.py $(ARGS)

bench-mappo: setup  ## what a central critic is worth: 10 seeds with and without
	$(BIN)/python benchmarks/mappo.py $(ARGS)

bench-prompts: setup  ## do mutations lose words, and does the policy help a model with other tasks? DATA=DIR of data sets; ARGS="--bbh DIR"
	$(BIN)/surefoot lm get smollm2
	$(BIN)/python benchmarks/prompts_content.py --data $(DATA) $(ARGS)
	$(BIN)/python benchmarks/prompts.py --data $(DATA) $(ARGS)

bench-serve: setup peers  ## decisions per CPU-second beside FastAPI with torch, and answer times while it learns
	$(BIN)/python benchmarks/serve.py --peer .venv-peers/bin/python $(ARGS)

bench-scale: setup  ## what more workers give, here and by a model; what a lost one costs; with VENV=.venv-ray Ray's too (make test-ray makes it)
	$(BIN)/python benchmarks/scale.py $(ARGS)

bench-tools: setup  ## tools chosen for queries, against the bars and the peers; DATA=DIR holds banking77 and clinc150; about 30 CPU-minutes
	$(BIN)/python benchmarks/tools.py --data $(DATA) $(ARGS)
	$(BIN)/python benchmarks/tools_system.py

bench-town: setup  ## towns: trained against chance and script over 5 seeds, teachers, replay, speed, scaling; about 20 CPU-minutes
	$(BIN)/python benchmarks/town.py $(ARGS)
	$(BIN)/python benchmarks/town.py --table

campaign-serve: setup  ## the service at length: 100 kills under load, 500 made-up requests an operation; about half an hour
	SUREFOOT_KILLS=100 SUREFOOT_EXAMPLES=500 $(BIN)/python -m pytest tests/e2e/test_serve.py -n 0 -q --durations=5

serve-page:  ## the service's page, after a change in studio/serve or in the client's types: needs Node; the bundle is kept in the repository
	$(PYTHON) scripts/serve_page.py

bench-tune: setup  ## settings that `surefoot tune` finds within half an hour, against the defaults, on fresh seeds; an hour
	$(BIN)/python benchmarks/tune.py $(ARGS)

soak: setup  ## 300 cycles of capture and training in one process: memory, files, threads, record, learning
	$(BIN)/python benchmarks/soak.py $(ARGS)

bench-graph: setup  ## what drawing a loop costs: script, standalone and interpreter beside train; the templates learn
	$(BIN)/python benchmarks/graph.py $(ARGS)

studio:  ## the studio's page, after a change in studio/: needs Node; the bundle is kept in the repository
	$(PYTHON) scripts/studio.py

bench-studio: setup  ## frames of a graph of 200 nodes in a headless browser, and what watching a run costs
	$(BIN)/python benchmarks/studio.py $(ARGS)

campaign: setup .venv-audit/bin/pip-audit  ## kills, bad inputs, damaged files, power cuts, each with a defect that must be caught; ten minutes, ARGS="--only K2"
	$(BIN)/python benchmarks/campaign $(ARGS)
	SUREFOOT_EXAMPLES=300 $(BIN)/python -m pytest tests/property/test_kernel.py -n 0 -q
	$(BIN)/python benchmarks/tables.py

campaign-long: setup .venv-audit/bin/pip-audit  ## the same with the counts of a release; many hours
	$(BIN)/python benchmarks/campaign --long $(ARGS)
	SUREFOOT_EXAMPLES=2000 $(BIN)/python -m pytest tests/property/test_kernel.py -n 0 -q
	$(BIN)/python benchmarks/tables.py

.venv-audit/bin/pip-audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit

clean:
	rm -rf .venv-audit $(VENV) build dist site studio/node_modules clients/typescript/node_modules clients/typescript/dist clients/typescript/build .pytest_cache .ruff_cache .hypothesis tests/e2e/browser/node_modules
