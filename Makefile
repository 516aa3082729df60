# SPDX-License-Identifier: Apache-2.0
# Makefile - short names for what people do here; Meson does the work.
#
#   make                    build/wattmeter and build/libwattmeter.so
#   make demo               what it does, in ten seconds
#   make check              build and test everything
#   make quick              build, unit tests and each command once: at every change
#   make bench              what it costs, beside others
#   make bench-truth        what must be true of every report, of a thousand random trees,
#                           and whether joules are as exact as is said
#   make install PREFIX=    default /usr/local; DESTDIR is honoured
#   make wheel              dist/wattmeter-*.whl, for Python's pip
#   make format             clang-format over all C files
#   make clean

PREFIX ?= /usr/local

.PHONY: all demo check quick bench bench-truth install wheel format clean
.NOTPARALLEL:

all: build/build.ninja
	@ninja -C build product

build/build.ninja:
	@scripts/setup --only-tell
	meson setup build

demo:
	@scripts/demo

check:
	@scripts/check

quick:
	@scripts/check quick

bench: all
	@ninja -C build bench-programs
	@python3 bench/bench.py
	@python3 bench/python.py
	@python3 bench/layers.py
	@python3 bench/views.py
	@python3 bench/watch.py

bench-truth: all
	@ninja -C build test-programs
	@WM_TREES=1000 python3 tests/system/test_truth.py
	@WM_RUNS=1000 build/tests/unit/unit coverage
	@WM_TRIALS=20000 build/tests/unit/unit analyze_runs

# The prefix is known to what is built only after ninja has run again.
install: build/build.ninja
	meson configure build -Dprefix=$(abspath $(PREFIX))
	@ninja -C build product
	meson install -C build --no-rebuild

wheel:
	@scripts/wheel

format:
	clang-format -i $$(scripts/c-files)

clean:
	rm -rf build
