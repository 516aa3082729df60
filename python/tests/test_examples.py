# SPDX-License-Identifier: Apache-2.0
"""What people copy: the programs in examples/, and the blocks of Python in the documents."""

import sys

import pytest

from machine import SOURCE

HERE = SOURCE / "python" / "tests"
EXAMPLES = sorted((SOURCE / "examples").glob("*.py"))
PAGES = [
    page
    for page in sorted((SOURCE / "docs").glob("*.md"))
    if "\n```python\n" in page.read_text(encoding="utf-8")
]


def finish(process):
    """The process's status, and what it printed."""
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.mark.parametrize("gpus", [False, True], ids=["no-gpu", "gpus"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(machine, example, gpus):
    if "\nimport torch\n" in example.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    if gpus:
        machine.add_gpus("everything")
    machine.add_package()
    status, out, err = finish(machine.start(example.read_text(encoding="utf-8")))
    assert (status, err) == (0, "") and out


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page(machine, page):
    machine.add_gpus("square")
    machine.add_package()
    program = (HERE / "page.py").read_text(encoding="utf-8")
    status, out, err = finish(machine.start(program, str(page)))
    if status == 77:
        pytest.skip(err.strip())
    assert status == 0, err
