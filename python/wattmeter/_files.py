# SPDX-License-Identifier: Apache-2.0
"""Files that methods write and read: what exists is not replaced by mistake."""

from __future__ import annotations

import os

from wattmeter._core import Error, ExistsError, NotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from wattmeter._results.report import Path


def _fail(error: Error, status: str) -> NoReturn:
    error.status = status
    raise error from None


def write_file(path: Path, content: bytes, overwrite: bool) -> None:
    """A new file. ExistsError if there is one, unless `overwrite`."""
    try:
        with open(path, "wb" if overwrite else "xb") as file:
            file.write(content)
    except FileExistsError:
        name = os.fsdecode(path)
        _fail(ExistsError(f"{name}: exists already; overwrite=True replaces it"), "EEXIST")


def read_file(path: Path, made_by: str) -> bytes:
    """A whole file. NotFoundError if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        name = os.fsdecode(path)
        message = f"{name}: there is no such file; {made_by} writes one"
        _fail(NotFoundError(message), "ENOENT")
