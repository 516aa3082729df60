# SPDX-License-Identifier: Apache-2.0
"""What of `region` needs coroutines and generators.

Between two steps of such a function its thread does other things, so its region is one
that is started and stopped by itself, and lies in no other.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import partial, update_wrapper

from wattmeter._core import region_function, region_start, region_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from wattmeter._core import region

GENERATOR = 0x20
COROUTINE = 0x80
ASYNC_GENERATOR = 0x200

# Of each task: what it has open by `async with`, as (region, number).
_open: ContextVar[tuple[tuple[region, int], ...]] = ContextVar(
    "wattmeter._region._open", default=()
)


async def enter(region: region) -> region:
    _open.set(_open.get() + ((region, region_start(region.name)),))
    return region


async def leave(region: region) -> None:
    entries = _open.get()
    for i in range(len(entries) - 1, -1, -1):
        if entries[i][0] is region:
            region_stop(entries[i][1])
            _open.set(entries[:i] + entries[i + 1 :])
            break


def decorate(region: region, function: Any) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(region, function.__func__))
    if isinstance(function, type) or not callable(function):
        raise TypeError("a region decorates functions")
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    if flags & ASYNC_GENERATOR:
        wrapper: Any = _async_generator(region.name, function)
    elif flags & COROUTINE:
        wrapper = _coroutine(region.name, function)
    elif flags & GENERATOR:
        wrapper = _generator(region.name, function)
    else:
        wrapper = region_function(region, function)
    return update_wrapper(wrapper, function)


def is_by_value(function: Any) -> bool:
    """Whether cloudpickle asks for a function that other processes do not find by its
    name. Only the caller's module tells which pickler asks."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__") == "pickle":
        frame = frame.f_back
    if "cloudpickle" not in str(frame.f_globals.get("__name__")):
        return False
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return function.__module__ == "__main__" or found is not function


def _coroutine(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        number = region_start(name)
        try:
            return await function(*args, **kwargs)
        finally:
            region_stop(number)

    return wrapper


def _generator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        number = region_start(name)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            region_stop(number)

    return wrapper


def _async_generator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        number = region_start(name)
        steps = function(*args, **kwargs)
        try:
            item = await steps.asend(None)
            while True:
                try:
                    sent = yield item
                except BaseException as error:
                    item = await steps.athrow(error)
                else:
                    item = await steps.asend(sent)
        except StopAsyncIteration:
            pass
        finally:
            try:
                await steps.aclose()
            finally:
                region_stop(number)

    return wrapper
