# SPDX-License-Identifier: Apache-2.0
"""python -m wattmeter: the command `wattmeter` that belongs to this package."""

from __future__ import annotations

import os
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


def _places() -> Iterator[str]:
    """The folders where an installation puts its commands: this package's first."""
    package = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(os.path.dirname(package), "bin")
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", f"{os.name}_user")
    yield os.path.dirname(sys.executable)
    yield from os.environ.get("PATH", os.defpath).split(os.pathsep)


def main() -> None:
    for place in _places():
        path = os.path.join(place, "wattmeter")
        if os.access(path, os.X_OK) and os.path.isfile(path):
            os.execv(path, ["wattmeter", *sys.argv[1:]])
    sys.exit("wattmeter: the command is not installed beside this Python package")


if __name__ == "__main__":
    main()
