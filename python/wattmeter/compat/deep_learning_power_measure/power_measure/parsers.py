# SPDX-License-Identifier: Apache-2.0
"""Drivers: where an experiment is recorded, and read from again.

`JsonParser` is AIPowerMeter's folder, `DatabaseParser` an SQLite file or a PostgreSQL
database. Both have the same methods; wattmeter itself records and reads.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from typing import Any, Dict, List, Mapping, Optional, Union

from wattmeter import _core

_Path = Union[str, "os.PathLike[str]"]
_POWER = "power_metrics.json"
_RESULTS = "results_exp.json"
_CARD = "model_summary.json"
_METADATA = "metadata.json"


def _text_of(meta_data: Union[str, Mapping[str, Any], None]) -> Optional[str]:
    if isinstance(meta_data, Mapping):
        return str(meta_data.get("description") or json.dumps(dict(meta_data)))
    return meta_data


class JsonParser:
    """A folder as AIPowerMeter leaves it, of any of its generations.

    `location` is the folder; it is made when something is recorded, not when something
    is read. `description` is kept in its metadata.json, and survives `cont=False`: in
    the original, that deletes it again at once. `meta_data` is the original's name for
    it, and may be a dictionary: its "description", or else all of it as JSON.
    """

    def __init__(
        self,
        location: _Path,
        description: Optional[str] = None,
        meta_data: Union[str, Mapping[str, Any], None] = None,
    ) -> None:
        self.folder = os.fspath(location)
        self.description = _text_of(meta_data) if description is None else description
        self.power_metric_filename = os.path.join(self.folder, _POWER)
        self.exp_metric_filename = os.path.join(self.folder, _RESULTS)
        self.model_card_file = os.path.join(self.folder, _CARD)

    def erase(self) -> None:
        """Deletes the recording: its own four files, and nothing else in the folder.

        A recording that wattmeter did not make, and one that is being made just now,
        stays: wattmeter.Error. The original deletes the whole folder, whatever is in
        it.
        """
        if not os.path.exists(self.power_metric_filename):
            return
        _core.Tracker().record(os.path.join(self.folder, ""), "overwrite")
        for name in _RESULTS, _CARD, _METADATA, _POWER:
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                os.unlink(path)

    def attach(self, tracker: _core.Tracker) -> None:
        """Has `tracker` add its run to the folder."""
        os.makedirs(self.folder, exist_ok=True)
        if self.description is not None:
            tracker.note("description", self.description)
        tracker.record(os.path.join(self.folder, ""), "append")

    def load(self) -> _core.Experiment:
        """The recording. wattmeter.Error: there is none in the folder."""
        folder = os.path.abspath(self.folder)
        return _core.Experiment(folder, os.path.basename(folder))

    def recordings(self) -> List[_core.Recording]:
        """The recording itself: all its segments in one."""
        return [_core.Recording(self.folder)]

    def save_exp_metrics(self, metrics: Mapping[str, float]) -> None:
        """Adds what the program knows of itself by now: its accuracy, a latency.

        The file is an array, which AIPowerMeter's own reader takes; its writer left
        lines that it could not read again.
        """
        os.makedirs(self.folder, exist_ok=True)
        records = self._exp_records()
        now = datetime.datetime.now().isoformat(sep=" ")
        records.append({"end_training_epoch": now, **metrics})
        beside = self.exp_metric_filename + ".new"
        with open(beside, "w", encoding="utf-8") as out:
            json.dump(records, out, indent=1)
        os.replace(beside, self.exp_metric_filename)

    def _exp_records(self) -> List[Any]:
        if not os.path.exists(self.exp_metric_filename):
            return []
        with open(self.exp_metric_filename, encoding="utf-8") as lines:
            text = lines.read()
        if text.lstrip().startswith("["):
            return list(json.loads(text))
        told = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [{"end_training_epoch": r["date"], **r["metrics"]} for r in told]

    def save_model_card(self, model_card: Mapping[str, Any]) -> None:
        """Keeps the description of the model: torchinfo's names, or the names in
        docs/experiments.md."""
        os.makedirs(self.folder, exist_ok=True)
        with open(self.model_card_file, "w", encoding="utf-8") as out:
            json.dump(model_card, out)

    def get_model_card(self) -> Optional[Dict[str, Any]]:
        """Reads that; None if it does not exist."""
        if not os.path.exists(self.model_card_file):
            return None
        with open(self.model_card_file, encoding="utf-8") as card:
            return dict(json.load(card))


class DatabaseParser:
    """The experiment called `name` in a database: a file that ends in .sqlite, .sqlite3
    or .db, or the URL of a PostgreSQL database (postgresql://...).

    Each measurement is one more run of it. `metrics` is a file of JSON lines for
    `save_exp_metrics()`, or one that the program writes itself; it is read when the
    measurement ends.
    """

    def __init__(
        self,
        target: _Path,
        name: str = "experiment",
        description: Optional[str] = None,
        metrics: Optional[_Path] = None,
        meta_data: Union[str, Mapping[str, Any], None] = None,
    ) -> None:
        self.folder = os.fspath(target)
        self.name = name
        self.description = _text_of(meta_data) if description is None else description
        self.metrics = metrics if metrics is None else os.fspath(metrics)
        self._card: Optional[Dict[str, Any]] = None

    def erase(self) -> None:
        """Nothing is ever deleted from a database: wattmeter.Error where it has runs of
        this name already. `cont=True` adds to them."""
        if self._runs():
            raise _core.failure(
                "EEXIST",
                f"there is an experiment '{self.name}' already; runs are never "
                "deleted, and cont=True adds to them",
            )

    def attach(self, tracker: _core.Tracker) -> None:
        """Has `tracker` add its run to the experiment."""
        tracker.experiment(self.folder, self.name, self.description)
        if self._card is not None:
            tracker.note("model", json.dumps(self._card))
        if self.metrics is not None:
            tracker.metrics(self.metrics)

    def load(self) -> _core.Experiment:
        """The runs. wattmeter.Error: there are none of this name."""
        return _core.Experiment(self.folder, self.name)

    def recordings(self) -> List[_core.Recording]:
        """Each of the runs."""
        return [_core.Recording(self.folder, run) for run in self._runs()]

    def _runs(self) -> List[int]:
        try:
            runs = json.loads(_core.print_list(self.folder, "json"))["runs"]
        except _core.Error as error:
            if error.status not in ("ENOENT", "EFORMAT"):
                raise
            return []  # There is nothing yet, or none of it is a recording.
        return [run["run"] for run in runs if run.get("experiment") == self.name]

    def save_exp_metrics(self, metrics: Mapping[str, float]) -> None:
        """Adds a line to the file `metrics`. ValueError: the driver was made
        without."""
        if self.metrics is None:
            raise ValueError("this driver was made without a file for metrics")
        with open(self.metrics, "a", encoding="utf-8") as out:
            out.write(json.dumps({"time": time.time(), **metrics}) + "\n")

    def save_model_card(self, model_card: Mapping[str, Any]) -> None:
        """Keeps it with the runs to come."""
        self._card = dict(model_card)

    def get_model_card(self) -> Optional[Dict[str, Any]]:
        """What is known of the model; None where that is nothing."""
        if self._card is not None or not self._runs():
            return self._card
        model = json.loads(self.load().json())["model"]
        return None if model is None else dict(model["card"])


Driver = Union[JsonParser, DatabaseParser]
