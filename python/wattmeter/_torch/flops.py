# SPDX-License-Identifier: Apache-2.0
"""How large a PyTorch model is, and what one pass of it computes."""

from __future__ import annotations

from importlib import import_module

from wattmeter._torch.modules import torch
from wattmeter._torch.profile import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def card_of(model: Any, input_size: Sequence[Any] | None) -> dict[str, Any]:
    """A model card: name, parameters, and the FLOPs of a forward pass or, as `flops_why`,
    why they are not known."""
    parameters = list(model.parameters())
    card: dict[str, Any] = {
        "name": type(model).__name__,
        "total_params": sum(one.numel() for one in parameters),
        "trainable_params": sum(one.numel() for one in parameters if one.requires_grad),
    }
    if input_size is None:
        card["flops_why"] = "the size of its input was not given"
        return card
    card["input_size"] = list(input_size)
    try:
        counters: Any = import_module("torch.utils.flop_counter")
    except ImportError:
        card["flops_why"] = f"PyTorch {torch.__version__} cannot count them, 2.1 can"
        return card
    try:
        flops = _count(counters.FlopCounterMode(display=False), model, input_size)
    except Exception as error:
        card["flops_why"] = f"the model cannot be called: {error}"
        return card
    if flops:
        card["flops"] = flops
    else:
        card["flops_why"] = "PyTorch counts none in it"
    return card


def _count(counter: Any, model: Any, input_size: Sequence[Any]) -> int:
    """The model is as it was afterwards."""
    first = next(model.parameters(), torch.empty(0))
    dtype = first.dtype if first.is_floating_point() else None
    is_one = all(isinstance(size, int) for size in input_size)
    sizes = [input_size] if is_one else input_size
    inputs = [torch.zeros(*size, dtype=dtype, device=first.device) for size in sizes]
    state = State(model)
    try:
        with torch.no_grad(), counter:
            model(*inputs)
    finally:
        state.put_back()
    return int(counter.get_total_flops())
