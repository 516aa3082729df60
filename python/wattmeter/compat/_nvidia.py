# SPDX-License-Identifier: Apache-2.0
"""The NVIDIA GPUs of this machine, for the modules that speak of no others."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Dict, Iterator, Optional

from wattmeter import _core

# By the words that chose them. To ask again costs less than to open.
_opened: Dict[str, _core.Gpus] = {}
_lock = threading.Lock()


def _forget() -> None:
    """In a forked child: what the parent opened stays the parent's."""
    global _opened, _lock
    _opened, _lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def asked(*groups: str, index: Optional[int] = None) -> Iterator[_core.Gpus]:
    """All GPUs of the machine, or one, that have just been asked for `groups`.

    The GPUs that are not chosen are not waited for. One thread at a time has them.
    ValueError where there is no GPU `index`.
    """
    words = "all" if index is None else str(index)
    with _lock:
        gpus = _opened.get(words)
        if gpus is None or gpus.refresh(groups):
            gpus = _opened[words] = _core.Gpus(words)
        yield gpus


def driver(gpus: _core.Gpus) -> _core.GpuLooked:
    """What NVIDIA's driver said when it was asked for GPUs; `present` of them are here.

    They are the first of all GPUs, in the order of nvidia-smi.
    """
    return next(looked for looked in gpus.looked if looked.source == "nvml")
