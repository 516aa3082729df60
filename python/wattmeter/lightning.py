# SPDX-License-Identifier: Apache-2.0
"""The joules of a training by Lightning.

    from wattmeter.lightning import EnergyCallback

    energy = EnergyCallback("run.sqlite")
    Trainer(callbacks=[energy]).fit(model, data)
    print(energy.report)
"""

from __future__ import annotations

from importlib import import_module

from wattmeter._training import Training

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wattmeter._results.report import Path, Report


def _import() -> Any:
    """By its old name where that is what is installed."""
    try:
        return import_module("lightning.pytorch")
    except ModuleNotFoundError as error:
        if error.name not in ("lightning", "lightning.pytorch"):
            raise
        return import_module("pytorch_lightning")


_Callback: Any = _import().Callback


class EnergyCallback(_Callback):  # type: ignore[misc]
    """Measures a training; its epochs, steps and validations are regions, and `energy_J`,
    the joules so far, is logged with what the module logs and at the end of each epoch, with
    `energy_is_estimated` if they are.

    record, options   as wattmeter.track() has them; with several ranks each has a file of
                      its own, "run-rank1.sqlite". A second training is one more run of it
    report            the wattmeter.Report; while it runs, of what has been sampled so far
    """

    def __init__(self, record: Path | None = None, **options: Any) -> None:
        super().__init__()
        self._training = Training(record, **options)

    @property
    def report(self) -> Report:
        return self._training.report

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._training.begin(trainer.global_rank, trainer.world_size)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self._training.end()

    def on_exception(self, trainer: Any, module: Any, exception: Any) -> None:
        self._training.end()

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        self._training.enter("epoch")

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self._training.leave("epoch")
        self._log(module)

    def on_train_batch_start(self, trainer: Any, module: Any, *_: Any) -> None:
        self._training.enter("step")

    def on_train_batch_end(self, trainer: Any, module: Any, *_: Any) -> None:
        self._training.leave("step")
        every = trainer.log_every_n_steps
        if every and trainer.global_step % every == 0:
            self._log(module)

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        self._training.enter("validation")

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        self._training.leave("validation")

    def _log(self, module: Any) -> None:
        figures = self._training.figures()
        if figures:
            module.log_dict(figures)
