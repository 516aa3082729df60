# SPDX-License-Identifier: Apache-2.0
"""Pickles of results, ours and the original's, read without running what they hold.

A pickle names the functions that make its objects. Here the names stand that such
results need: the classes of results, and of pandas and NumPy what their tables and series
are made of, none of which does anything but hold data.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sub_tracker import SubTrackingResults

_RESULTS = ("CodeBlockResults", "SubTrackingResults")
_MODULES = ("gpu_tracker.sub_tracker", "wattmeter.compat.gpu_tracker.sub_tracker")

# Of the modules that these stand in, in pandas 2 and 3, NumPy 1 and 2.
_DATA = {
    "_codecs": ("encode",),
    "__builtin__": ("bytearray", "slice"),
    "builtins": ("bytearray", "slice"),
    "numpy": ("dtype", "ndarray"),
    "numpy._core.multiarray": ("_reconstruct", "scalar"),
    "numpy._core.numeric": ("_frombuffer",),
    "numpy.core.multiarray": ("_reconstruct", "scalar"),
    "numpy.core.numeric": ("_frombuffer",),
    "pandas": ("DataFrame", "Index", "Series", "StringDtype"),
    "pandas._libs.arrays": ("__pyx_unpickle_NDArrayBacked",),
    "pandas._libs.internals": ("_unpickle_block",),
    "pandas.arrays": ("ArrowStringArray", "StringArray"),
    "pandas.core.frame": ("DataFrame",),
    "pandas.core.indexes.base": ("Index", "_new_Index"),
    "pandas.core.internals.managers": ("BlockManager", "SingleBlockManager"),
    "pandas.core.series": ("Series",),
    "pyarrow.lib": ("_restore_array", "py_buffer", "type_for_alias"),
}


def _quoted_name(value: str, quote: object) -> str:
    """A text as SQLAlchemy has it where the original read an SQLite file."""
    return value


def is_pickle(path: str) -> bool:
    """Whether the file begins as pickles of protocol 2 and later do."""
    with open(path, "rb") as file:
        head = file.read(2)
    return len(head) == 2 and head[0] == 0x80 and 2 <= head[1] <= 5


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in _MODULES and name in _RESULTS:
            from . import sub_tracker

            return getattr(sub_tracker, name)
        if (module, name) == ("sqlalchemy.sql.elements", "quoted_name"):
            return _quoted_name
        if name in _DATA.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(
            f"{module}.{name} does not belong into results of gpu_tracker"
        )


def load(path: str) -> SubTrackingResults:
    """The results in a pickle.

    :raises pickle.UnpicklingError: it holds something else
    :raises ImportError: the original wrote it, and there is no pandas to read its tables
    """
    from .sub_tracker import SubTrackingResults

    try:
        with open(path, "rb") as file:
            results = _Unpickler(file).load()
        if isinstance(results, SubTrackingResults):
            results.to_json()
            return results
    except (pickle.UnpicklingError, ImportError, OSError):
        raise
    except Exception as error:  # what damaged bytes come to may be of any kind
        raise pickle.UnpicklingError(f"{path}: {error!r}") from error
    raise pickle.UnpicklingError(f"{path}: not the results of a session")
