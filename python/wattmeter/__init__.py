# SPDX-License-Identifier: Apache-2.0
"""What a computation costs: time, CPU, memory, GPU, watts and joules.

    import wattmeter

    with wattmeter.track() as t:
        train()
    print(t.report)

track       measures this process, or another one
region      names a block of code or a function
measure     the joules of a snippet
cap         power caps for a block of a program
power_cap_profiler   the power cap that is best for a step of a program
run         runs a command and gives its report
gpus        GPU properties and live values
doctor      what can be measured on this machine, and why not
read        a recording as columns
compare     what differs between runs
repeat      functions and commands again and again, in turns, and how they compare
plot        recordings as a figure

Importing it starts nothing and opens nothing.
"""

from wattmeter._core import AccessError, Error, ExistsError, NotFoundError
from wattmeter._core import region, version as __version__

__all__ = [
    "AccessError",
    "Comparison",
    "Error",
    "ExistsError",
    "Figure",
    "Gpu",
    "NotFoundError",
    "Recording",
    "Region",
    "Report",
    "TimeoutExpired",
    "cap",
    "compare",
    "doctor",
    "gpus",
    "measure",
    "plot",
    "power_cap_profiler",
    "read",
    "region",
    "repeat",
    "reset_power_cap",
    "run",
    "set_power_cap",
    "track",
]

# Imported when they are first asked for, as most programs need one or two.
_PLACES = {
    "Comparison": "_results.compare",
    "Figure": "_results.figure",
    "Gpu": "_devices.gpus",
    "Recording": "_results.recording",
    "Region": "_results.report",
    "Report": "_results.report",
    "TimeoutExpired": "_timeout",
    "cap": "_devices.cap",
    "compare": "_results.compare",
    "doctor": "_doctor",
    "gpus": "_devices.gpus",
    "measure": "_measure",
    "plot": "_plot",
    "power_cap_profiler": "_devices.cap_profile",
    "read": "_results.recording",
    "repeat": "_repeat",
    "reset_power_cap": "_devices.cap",
    "run": "_track",
    "set_power_cap": "_devices.cap",
    "track": "_track",
}

_MODULES = frozenset(("compat", "huggingface", "lightning", "live", "torch"))


def __getattr__(name):
    if name not in _PLACES and name not in _MODULES:
        raise AttributeError(f"module 'wattmeter' has no attribute '{name}'")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"wattmeter.{name}")
    value = getattr(import_module(f"wattmeter.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_PLACES, *_MODULES})


def load_ipython_extension(shell):
    """%load_ext wattmeter: gives the shell %%wattmeter."""
    from wattmeter._notebook import load

    load(shell)
