#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_c_api.py - docs/c-api.md: its program is compiled against the headers and the library
alone, and prints what the page shows; and the exported symbols have a version."""

import os
import re
import subprocess

import tap

PAGE = (tap.SOURCE / "docs" / "c-api.md").read_text()
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def run(*argv, **environment):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False,
                          env={**os.environ, "WATTMETER_NVML": "/nonexistent", **environment})


def build(folder):
    """The page's program; its path."""
    source, program = folder / "cost.c", folder / "cost"
    source.write_text(re.search(r"^```c\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1])
    sanitizers = ["-fsanitize=address,undefined"] if tap.SANITIZED else []
    made = run("cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", *sanitizers,
               f"-I{tap.SOURCE / 'include'}", "-o", program, source, f"-L{tap.BUILD}", "-lwattmeter", f"-Wl,-rpath,{tap.BUILD}")
    assert made.returncode == 0, made.stderr
    return program


@tap.case("the program of the page compiles and prints the figures of the page")
def _(folder):
    sysfs = folder / "sys"
    sysfs.mkdir()
    done = run(build(folder), "sleep", "0.2", WATTMETER_SYSFS=sysfs)
    assert done.returncode == 0, done.stderr
    shown = re.search(r"^    \$ \./cost [^\n]*\n((?:    .*\n)+)", PAGE, re.MULTILINE)[1]
    names = [line.split()[0] for line in shown.splitlines()]
    printed = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [name for name, _ in printed] == names, done.stdout
    assert all(NUMBER.search(value) for _, value in printed[:3]), done.stdout
    assert "estimated" in printed[3][1] or printed[3][1].startswith("n/a ("), done.stdout


@tap.case("the program says why it cannot start a command")
def _(folder):
    program = build(folder)
    done = run(program, "/nonexistent/command")
    assert done.returncode == 1 and "/nonexistent/command" in done.stderr, done.stderr
    assert run(program).returncode == 2


@tap.case("each exported symbol has a version and is declared in a header")
def _(_folder):
    listed = run("nm", "-D", "--defined-only", "--with-symbol-versions", tap.BUILD / "libwattmeter.so").stdout
    symbols = [line.split()[-1] for line in listed.splitlines() if line.split()[1] != "A"]
    headers = "".join(path.read_text() for path in (tap.SOURCE / "include/wattmeter").glob("*.h"))
    assert len(symbols) > 50
    for symbol in symbols:
        name, version = symbol.split("@@")
        assert version == "WATTMETER_1" and re.search(rf"\b{name}\(", headers), symbol


@tap.case("each struct with options begins with its size")
def _(_folder):
    rules = (tap.SOURCE / "scripts/abi-additions").read_text()
    names = re.search(r"name_regexp = \^(.*)\$", rules)[1].replace("(", "(?:")
    found = 0
    for path in sorted((tap.SOURCE / "include/wattmeter").glob("*.h")):
        if path.name in ("plot.h", "watch.h"):  # of modules, which have the library's version
            continue
        for name, first in re.findall(rf"^struct ({names}) {{\n *(.*)$", path.read_text(), re.MULTILINE):
            assert first.startswith("size_t size;"), f"{path.name}: {name}: {first}"
            found += 1
    assert found >= 12, found


tap.main()
