# SPDX-License-Identifier: Apache-2.0
"""Functions each call of which is measured: @track() and @measure()."""

from __future__ import annotations

import inspect
from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, Callable


def measured(
    function: Any, session: Callable[[], AbstractContextManager[Any]], name: str
) -> Any:
    """`function`, with a session around each call: of a coroutine or a generator from its
    first step to its end."""
    if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
        raise TypeError(f"{name}() decorates functions, not {type(function).__name__}")
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"an asynchronous generator has 'with {name}()' inside instead")
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def coroutine(*args: Any, **keywords: Any) -> Any:
            with session():
                return await function(*args, **keywords)

        return coroutine
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def generator(*args: Any, **keywords: Any) -> Any:
            with session():
                return (yield from function(*args, **keywords))

        return generator

    @wraps(function)
    def plain(*args: Any, **keywords: Any) -> Any:
        with session():
            return function(*args, **keywords)

    return plain
