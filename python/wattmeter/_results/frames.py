# SPDX-License-Identifier: Apache-2.0
"""to_pandas() of what has figures, and what is said where a package is missing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

    from wattmeter._results.figure import Figure


def needed(package: str) -> Any:
    """The package, or an ImportError that says how to get it."""
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"to_{package}() needs {package}, which cannot be imported ({error}): "
            f"pip install {package}"
        ) from None


def _cells(figures: dict[str, Figure], prefix: str, units: dict[str, str]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, figure in figures.items():
        cells[prefix + key] = figure.value
        units[prefix + key] = figure.unit
        if figure.low is not None:
            cells[f"{prefix}{key}_low"] = figure.low
            cells[f"{prefix}{key}_high"] = figure.high
    return cells


def frame_of_parts(parts: Iterable[Any]) -> pandas.DataFrame:
    """A row for each: its facts, its figures, and the ranges of these."""
    units: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for part in parts:
        row = {k: v for k, v in vars(part).items() if not k.startswith("_")}
        for name in ("histogram", "usage"):
            row.pop(name, None)
        row.update(_cells(part.figures, "", units))
        if hasattr(type(part), "exclusive"):
            row.update(_cells(part.exclusive.figures, "exclusive_", units))
        rows.append(row)
    frame: pandas.DataFrame = needed("pandas").DataFrame(rows)
    numbers = list(units)
    frame[numbers] = frame[numbers].astype(float)  # a missing one is NaN
    if rows:
        frame = frame.set_index("label" if "label" in frame else "name")
    frame.attrs["units"] = units
    return frame


def frame_of_comparison(compared: dict[str, Any]) -> pandas.DataFrame:
    """A row for each figure of each session, as a whole (region None) and by region."""
    columns = (
        "region figure session unit value uncertainty origin runs change low high verdict "
        "family why"
    ).split()
    rows: list[dict[str, Any]] = []
    parts: list[tuple[str | None, dict[str, Any]]] = [(None, compared["overall"])]
    parts += [(block["label"], block["figures"]) for block in compared["blocks"]]
    for region, figures in parts:
        for key, figure in figures.items():
            for session, cell in figure["sessions"].items():
                named = {"region": region, "figure": key, "session": session}
                shared = {"unit": figure["unit"], "family": figure["family"]}
                rows.append({**cell, **named, **shared})
    frame: pandas.DataFrame = needed("pandas").DataFrame(rows, columns=columns)
    return frame
