# SPDX-License-Identifier: Apache-2.0
"""What of `region` needs contexts, coroutines and generators.

Between two steps of a task its thread runs others, so the stack of the thread says nothing
of it. Its regions are started and stopped by their numbers, each inside the innermost of
its context (contextvars), which the tasks that it starts inherit.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import partial, update_wrapper

from wattmeter._core import (
    region,
    region_function,
    region_set_contexts,
    region_start,
    region_stop,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

GENERATOR = 0x20
COROUTINE = 0x80
ASYNC_GENERATOR = 0x200


class _Call:
    """One of a context, by `region` or, where that is None, of a function."""

    __slots__ = ("region", "number", "around")

    def __init__(self, region: region | None, name: str, around: _Call | None) -> None:
        self.region = region
        self.around = around
        self.number: int = region_start(name, around.number if around else None)


_open: dict[_Call, None] = {}  # in the order of their starts
_innermost: ContextVar[_Call | None] = ContextVar(
    "wattmeter._region._innermost", default=None
)


def _find_open(call: _Call | None) -> _Call | None:
    while call is not None and call not in _open:
        call = call.around
    return call


def _find_innermost() -> _Call | None:
    call = _find_open(_innermost.get())
    if call is not None:
        call.around = _find_open(call.around)  # those that are over are kept no longer
    return call


def _open_call(region: region | None, name: str) -> _Call:
    call = _Call(region, name, _find_innermost())
    _open[call] = None
    return call


def _close_call(call: _Call) -> None:
    if call in _open:
        del _open[call]
        region_stop(call.number)


def _enter(region: region | None, name: str) -> _Call:
    call = _open_call(region, name)
    _innermost.set(call)
    return call


def _exit(call: _Call) -> None:
    _close_call(call)
    _innermost.set(_find_innermost())


def _leave(region: region) -> bool:
    """Ends what this context, or else another one, has entered last by it, as an
    asynchronous generator is closed in another one. False: none has."""
    call = _find_innermost()
    while call is not None and call.region is not region:
        call = _find_open(call.around)
    if call is None:
        call = next((one for one in reversed(list(_open)) if one.region is region), None)
    if call is not None:
        _exit(call)
    return call is not None


region_set_contexts(_open, _innermost.get, _enter, _exit, _leave)


async def enter(region: region) -> region:
    _enter(region, region.name)
    return region


async def leave(region: region) -> None:
    _leave(region)


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
        call = _enter(None, name)
        try:
            return await function(*args, **kwargs)
        finally:
            _exit(call)

    return wrapper


# The steps of a generator run in the context of who takes them, whose regions do not lie in
# the generator's.
def _generator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _open_call(None, name)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            _close_call(call)

    return wrapper


def _async_generator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _open_call(None, name)
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
                _close_call(call)

    return wrapper
