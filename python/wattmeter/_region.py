# SPDX-License-Identifier: Apache-2.0
"""What of `region` needs coroutines and generators.

Their calls belong to a context (contextvars), as the extension keeps them: between two
steps of a task its thread runs others.
"""

from __future__ import annotations

import sys
from functools import partial, update_wrapper

from wattmeter._core import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_GENERATOR,
    region,
    region_close,
    region_enter,
    region_function,
    region_leave,
    region_open,
    region_open_apart,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


async def enter_async(region: region) -> region:
    region_enter(region)
    return region


async def leave_async(region: region) -> None:
    region_leave(region)


def decorate_by_name(function: Any) -> Any:
    """@region without a name, which is then the function's."""
    inner = getattr(function, "__func__", function)
    while isinstance(inner, partial):
        inner = inner.func
    name = getattr(inner, "__qualname__", None)
    if not isinstance(name, str):
        raise TypeError("the name of a region must be a str")
    return decorate(region(name), function)


def decorate(region: region, function: Any) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(region, function.__func__))
    if isinstance(function, type) or not callable(function):
        raise TypeError("a region decorates functions")
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    if flags & CO_ASYNC_GENERATOR:
        wrapper: Any = _async_generator(region, function)
    elif flags & CO_COROUTINE:
        wrapper = _coroutine(region, function)
    elif flags & CO_GENERATOR:
        wrapper = _generator(region, function)
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


def _coroutine(region: region, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = region_open(region)
        try:
            return await function(*args, **kwargs)
        finally:
            region_close(call)

    return wrapper


# The steps of a generator run in the context of who takes them, whose regions do not lie in
# the generator's.
def _generator(region: region, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = region_open_apart(region)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            region_close(call)

    return wrapper


def _async_generator(region: region, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = region_open_apart(region)
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
                region_close(call)

    return wrapper
