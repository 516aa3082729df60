# SPDX-License-Identifier: Apache-2.0
"""Files that methods write and read: what exists is not replaced by mistake."""

from __future__ import annotations

import os

from wattmeter import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wattmeter._results.report import Path


def write_file(path: Path, content: bytes, overwrite: bool) -> None:
    """A new file. ExistsError if there is one, unless `overwrite`."""
    try:
        with open(path, "wb" if overwrite else "xb") as file:
            file.write(content)
    except FileExistsError:
        name = os.fsdecode(path)
        text = f"{name}: exists already; overwrite=True replaces it"
        raise _core.failure("EEXIST", text) from None


def read_file(path: Path, made_by: str) -> bytes:
    """A whole file. NotFoundError if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        name = os.fsdecode(path)
        text = f"{name}: there is no such file; {made_by} writes one"
        raise _core.failure("ENOENT", text) from None
