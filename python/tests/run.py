#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs files of tests with pytest, on the package that was built, and speaks TAP.

    WM_BUILD_ROOT=build python/tests/run.py [FILE...]

Where there is no pytest, or not what the tests of these files need, all of it is skipped, with
status 77. An extension that was built
with a sanitizer needs the sanitizer's library in the interpreter from the start: RUN_PRELOAD
names it.
"""

import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("WM_BUILD_ROOT", HERE.parents[1] / "build"))


def how_to_install(reason):
    """Why a test was skipped; if a module is missing, with the command that installs it."""
    missing = re.search(r"No module named '([\w-]+)", reason)
    return f"{missing[1]} is not installed (python3 -m pip install {missing[1]})" if missing else reason


class Tap:
    """What pytest tells of each test, as a line; its own report goes to stderr."""

    def __init__(self):
        self.count = 0
        self.out = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def tell(self, result, name, rest=""):
        self.count += 1
        name = name.replace("#", "")
        self.out.write(f"{result} {self.count} - {name}{rest}\n")

    def pytest_collection_finish(self, session):
        self.out.write(f"1..{len(session.items)}\n")

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.partition("::")[2]
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.tell("ok", name, f" # SKIP {how_to_install(reason)}")
        elif report.when == "call" or report.failed:
            self.tell("not ok" if report.failed else "ok", name)


def main(files):
    library = os.environ.pop("RUN_PRELOAD", "")
    path = [str(BUILD.resolve() / "python"), os.environ.get("PYTHONPATH", "")]
    if path[0] not in path[1].split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        if library:
            os.environ["LD_PRELOAD"] = library
        os.execv(sys.executable, [sys.executable, *sys.argv])
    try:
        import pytest
    except ImportError:
        print("there is no pytest: apt-get install python3-pytest", file=sys.stderr)
        return 77
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(HERE)]
    status = pytest.main([*options, *(files or [str(HERE)])], plugins=[Tap()])
    return 77 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
