# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of Python in a page of documents as they are printed, one after the other,
beside the recordings that pages take for granted. The exit status is 77 where a block needs a
package that is not there; those that do without it have run then."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import wattmeter

NAMES = {"__name__": "__main__"}


def run_cell(block, name):
    """As a notebook does."""
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.instance(user_ns=NAMES).run_cell(block).raise_error()


def run_block(block, name):
    exec(compile(block, name, "exec"), NAMES)


def write_files(build):
    with wattmeter.track("a.sqlite", interval=0.01):
        with wattmeter.region("epoch"):
            time.sleep(0.05)
    shutil.copy("a.sqlite", "b.sqlite")
    wattmeter.read("a.sqlite").export("run.csv")
    with open("table.csv", "wb") as table:
        subprocess.run([build / "wattmeter", "report", "--csv", "a.sqlite"], stdout=table, check=True)


def main(page):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    run = run_cell if any(block.startswith("%") for block in blocks) else run_block
    source = pathlib.Path(page).resolve().parents[1]
    write_files(pathlib.Path(os.environ.get("WM_BUILD_ROOT", source / "build")))
    status = 0
    for number, block in enumerate(blocks, 1):
        try:
            run(block, f"{page}, block {number}")
        except ModuleNotFoundError as error:
            if error.name.startswith("wattmeter"):
                raise
            print(f"block {number}: {error}", file=sys.stderr)
            status = 77
        except NameError:
            if status == 0:  # otherwise a block that was left out has it
                raise
        except wattmeter.Error as error:
            if "apt install" not in str(error):
                raise
            print(f"block {number}: {error}", file=sys.stderr)
            status = 77
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
