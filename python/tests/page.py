# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of Python in a page of documents, one after the other, with the names
that pages take for granted. The exit status is 77 where a block needs a package that is not
there; the others have run then."""

import ast
import asyncio
import inspect
import json
import os
import pathlib
import re
import shutil
import sys
import time
from types import SimpleNamespace

import wattmeter


def step(*_):
    time.sleep(0.01)


def train(*_):
    with wattmeter.region("epoch"):
        time.sleep(0.05)


async def answer():
    await asyncio.sleep(0.01)


def model(_):
    return SimpleNamespace(backward=step)


NAMES = {
    "accuracy": 0.9,
    "answer": answer,
    "batches": [1, 2, 3],
    "data": [1, 2, 3],
    "epoch": 1,
    "example_function": step,
    "json": json,
    "load": step,
    "model": model,
    "optimizer": SimpleNamespace(step=step),
    "out": sys.stdout,
    "pid": os.getpid(),
    "step": step,
    "time": time,
    "torch": SimpleNamespace(cuda=SimpleNamespace(synchronize=step)),
    "train": train,
    "wattmeter": wattmeter,
    "work": step,
}


def run_cell(block, name):
    """As a notebook does."""
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.instance(user_ns=NAMES).run_cell(block).raise_error()


def run_block(block, name):
    code = compile(block, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, NAMES)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def write_files():
    with wattmeter.track("a.sqlite", interval=0.01):
        train()
    shutil.copy("a.sqlite", "b.sqlite")
    wattmeter.read("a.sqlite").export("run.csv")
    pathlib.Path("table.csv").write_text(wattmeter._core.print_csv(["a.sqlite"]))


def main(page):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    run = run_cell if any(block.startswith("%") for block in blocks) else run_block
    write_files()
    status = 0
    for number, block in enumerate(blocks, 1):
        try:
            run(block, f"{page}, block {number}")
        except ModuleNotFoundError as error:
            if error.name.startswith("wattmeter"):
                raise
            print(f"block {number}: {error}", file=sys.stderr)
            status = 77
        except wattmeter.Error as error:
            if "apt install" not in str(error):
                raise
            print(f"block {number}: {error}", file=sys.stderr)
            status = 77
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
