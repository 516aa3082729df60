# SPDX-License-Identifier: Apache-2.0
"""The joules of a training by Hugging Face's Trainer.

    from wattmeter.huggingface import EnergyCallback

    energy = EnergyCallback("run.sqlite")
    Trainer(..., callbacks=[energy]).train()
    print(energy.report)
"""

from __future__ import annotations

import sys
from importlib import import_module

from wattmeter._training import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wattmeter._results.report import Path, Report

_TrainerCallback: Any = import_module("transformers").TrainerCallback


def _go_ahead(callback: Any, caller: Any) -> None:
    """Before the reporters, which are called in the order of the handler's list, and behind
    the one that decides what comes after a step. The caller is the handler, which
    callbacks do not get."""
    callbacks = getattr(caller, "callbacks", None)
    if isinstance(callbacks, list) and callback in callbacks[1:]:
        callbacks.remove(callback)
        flow = type(callbacks[0]).__name__ == "DefaultFlowCallback"
        callbacks.insert(1 if flow else 0, callback)


class EnergyCallback(_TrainerCallback):  # type: ignore[misc]
    """Measures a training; its epochs, steps and validations are regions, and `energy_J`,
    the joules so far, is in each line that is logged, with `energy_is_estimated` if they are.

    record, options   as wattmeter.track() has them; with several ranks each has a file of
                      its own, "run-rank1.sqlite". A second training is one more run of it
    report            the wattmeter.Report; while it runs, of what has been sampled so far
    """

    def __init__(self, record: Path | None = None, **options: Any) -> None:
        self._training = Training(record, **options)

    @property
    def report(self) -> Report:
        return self._training.report

    def on_train_begin(self, args: Any, *_: Any, **keywords: Any) -> None:
        _go_ahead(self, sys._getframe(1).f_locals.get("self"))
        self._training.begin(args.process_index, args.world_size)

    def on_train_end(self, *_: Any, **keywords: Any) -> None:
        self._training.end()

    def on_epoch_begin(self, *_: Any, **keywords: Any) -> None:
        self._training.enter("epoch")

    def on_epoch_end(
        self, args: Any = None, state: Any = None, control: Any = None, **_: Any
    ) -> None:
        self._training.leave("epoch")
        self._validate(control)

    def on_step_begin(self, *_: Any, **keywords: Any) -> None:
        self._training.enter("step")

    def on_step_end(
        self, args: Any = None, state: Any = None, control: Any = None, **_: Any
    ) -> None:
        self._training.leave("step")
        self._validate(control)

    def _validate(self, control: Any) -> None:
        if getattr(control, "should_evaluate", False):
            self._training.enter("validation")

    def on_evaluate(self, *_: Any, **keywords: Any) -> None:
        self._training.leave("validation")

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Any = None, **keywords: Any
    ) -> None:
        figures = self._training.figures()
        if logs is not None:
            logs.update(figures)
        # What is kept has been copied from `logs` before.
        if state.log_history:
            state.log_history[-1].update(figures)
