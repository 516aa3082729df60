# SPDX-License-Identifier: Apache-2.0
"""What the layers of a PyTorch network cost.

    import wattmeter.torch

    with wattmeter.torch.layers(model) as m:
        train(model)
    print(m)

layers      measures each layer where it runs, in training and inference
profile     replays each layer until its joules are as exact as asked for
"""

from __future__ import annotations

__all__ = ["layers", "profile"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wattmeter._torch.layers import layers
    from wattmeter._torch.profile import profile

# Imported when they are first asked for, as they need PyTorch.
_PLACES = {"layers": "_torch.layers", "profile": "_torch.profile"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'wattmeter.torch' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"wattmeter.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]
