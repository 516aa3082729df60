# SPDX-License-Identifier: Apache-2.0
"""What the command `gpu-tracker` leaves to Python: pickles."""

from __future__ import annotations

import json
import logging
import os
import pickle
from typing import Callable, Union

from wattmeter import _core

from .sub_tracker import SubTrackingAnalyzer, TrackingComparison
from .tracker import ResourceUsage


def _put(results: Union[bytes, str], output: str) -> None:
    """A pickle on the screen is printed as Python shows bytes."""
    if not output:
        print(results)
        return
    new = output + ".new"
    with open(new, "wb") as file:
        file.write(results if isinstance(results, bytes) else results.encode())
    os.replace(new, output)


def _analyze(tracking_file: str, sub_tracking_file: str, output: str) -> None:
    analyzer = SubTrackingAnalyzer(tracking_file, sub_tracking_file)
    _put(pickle.dumps(analyzer.sub_tracking_results()), output)


def _compare(statistic: str, format: str, output: str, *sessions: str) -> None:
    comparison = TrackingComparison(dict(zip(sessions[::2], sessions[1::2])))
    if format == "pickle":
        _put(pickle.dumps(comparison.compare(statistic)), output)
    elif format == "json":
        _put(comparison.printed(statistic, "gpu-tracker-json"), output)
    else:
        _put(comparison.printed(statistic, "gpu-tracker"), output)


def _usage(path: str) -> None:
    """Of a tracker: the JSON in the file becomes a pickle."""
    with open(path, encoding="utf-8") as file:
        usage = ResourceUsage.from_json(json.load(file))
    _put(pickle.dumps(usage), path)


_VERBS: dict[str, Callable[..., None]] = {
    "analyze": _analyze,
    "compare": _compare,
    "usage": _usage,
}


def main(words: list[str]) -> int:
    """The status of the process. What went wrong is on standard error."""
    try:
        _VERBS[words[0]](*words[1:])
    except (
        _core.Error,
        ImportError,
        OSError,
        ValueError,
        pickle.UnpicklingError,
    ) as error:
        logging.error(str(error))
        return 1
    return 0
