# SPDX-License-Identifier: Apache-2.0
"""What run() raises after its timeout; subprocess is imported for nothing else."""

from __future__ import annotations

import subprocess

from wattmeter._core import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    from wattmeter._results.report import Path, Report


class TimeoutExpired(Error, subprocess.TimeoutExpired):
    """An Error, and a subprocess.TimeoutExpired. `report` has what was measured until the
    command was ended, and so has the recording."""

    def __init__(self, cmd: Iterable[Path], timeout: float, report: Report) -> None:
        subprocess.TimeoutExpired.__init__(self, cmd, timeout)  # type: ignore[arg-type]
        self.args = ("ETIMEDOUT", str(self))
        self.status = "ETIMEDOUT"
        self.report = report

    def __str__(self) -> str:
        return subprocess.TimeoutExpired.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cmd, self.timeout, self.report)
