# SPDX-License-Identifier: Apache-2.0
"""The power cap profiler of a thesis's `profiler` module, with its arguments.

    from wattmeter.compat.profiler import power_cap_profiler, set_power_cap, reset_power_cap

    cap = power_cap_profiler(model=model, dataloader=loader, train=True, loss_fn=loss,
                             optimizer=optimizer)
    set_power_cap(gpu_num=0, cap=cap)

What is different: it minimises energy x time squared, as its name says; it answers with a
cap that can be set; it restores model, optimiser and random state, and the previous cap even
after kill -9.
"""

from __future__ import annotations

import copy

from wattmeter._devices.cap import reset_power_cap, set_power_cap
from wattmeter._devices.cap_profile import power_cap_profiler as _profile
from wattmeter._torch.modules import torch
from wattmeter._torch.profile import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

__all__ = ["power_cap_profiler", "reset_power_cap", "set_power_cap"]


def _batches(dataloader: Any) -> Iterator[Any]:
    """From the start again at its end."""
    while True:
        empty = True
        for batch in dataloader:
            empty = False
            yield batch
        if empty:
            raise ValueError("the dataloader has no batches")


def _stepper(
    model: Any, dataloader: Any, device: Any, loss_fn: Any, optimizer: Any
) -> Callable[[], None]:
    """Does one batch: of training where there is an optimizer."""
    batches = _batches(dataloader)

    def train() -> None:
        inputs, labels = next(batches)[:2]
        optimizer.zero_grad()
        loss_fn(model(inputs.to(device)), labels.to(device)).backward()
        optimizer.step()

    def infer() -> None:
        batch = next(batches)
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        with torch.no_grad():
            model(inputs.to(device))

    return infer if optimizer is None else train


def power_cap_profiler(
    model: Any,
    dataloader: Any,
    gpu_num: int = 0,
    train: bool = False,
    loss_fn: Any = None,
    optimizer: Any = None,
    out_file: str | None = None,
    *,
    objective: str = "ed2p",
    max_slowdown: float | None = None,
    probes: int = 8,
    window: float = 10.0,
) -> int:
    """The power cap, in watts, that is best for training or inference of a model.

    model, dataloader    the model, and batches of (inputs, labels), or of inputs
    gpu_num              the GPU that is capped; the model runs on it, and is afterwards
                         where it was
    train                with loss_fn(outputs, labels) and the optimizer
    out_file             a CSV file of the curve, which is replaced

    The rest is as in wattmeter.power_cap_profiler(). The default limit where no cap is
    better.
    """
    if train and (loss_fn is None or optimizer is None):
        raise ValueError("training needs loss_fn and optimizer")
    first = next(iter([*model.parameters(), *model.buffers()]), None)
    home = torch.device("cpu") if first is None else first.device
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda", gpu_num) if has_gpu and home.type == "cpu" else home
    state = State(model)
    kept = copy.deepcopy(optimizer.state_dict()) if train else None
    was_training = model.training
    try:
        model.to(device)
        model.train(train)
        step = _stepper(model, dataloader, device, loss_fn, optimizer if train else None)
        choice = _profile(
            step, gpu=gpu_num, objective=objective, max_slowdown=max_slowdown,
            probes=probes, window=window,
            synchronize=torch.cuda.synchronize if has_gpu else None,
        )
    finally:
        model.to(home)
        model.train(was_training)
        state.put_back()
        if kept is not None:
            optimizer.load_state_dict(kept)
    if out_file is not None:
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(choice.csv)
    return round(choice.cap)
