# SPDX-License-Identifier: Apache-2.0
"""Names of tracking and sub-tracking files, and what is wrong with such a file."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator, Union

from wattmeter import _core

Path = Union[str, "os.PathLike[str]"]

_KINDS: dict[str, type[Exception]] = {
    "EEXIST": FileExistsError,
    "ENODEV": FileNotFoundError,
    "ENOENT": FileNotFoundError,
    "EACCES": PermissionError,
    "EIO": OSError,
}


def check_name(path: Path) -> None:
    """:raises ValueError: it ends neither in .csv nor in .sqlite"""
    if not os.fspath(path).endswith((".csv", ".sqlite")):
        raise ValueError(
            f'Invalid file name: "{path}". Valid file extensions are ".csv" and '
            '".sqlite".'
        )


def builtin_error(error: _core.Error) -> Exception:
    """The same as one of Python's own."""
    return _KINDS.get(error.status, ValueError)(str(error))


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """The library's errors become Python's own."""
    try:
        yield
    except _core.Error as error:
        raise builtin_error(error) from None
