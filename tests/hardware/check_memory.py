# SPDX-License-Identifier: Apache-2.0
"""check_memory.py - the memory that `info` gives to a process that has taken a known
amount of it."""

import json
import time

import nvml
import tables
import tap
from check_sensor import start_load, tell
from tap import Skip, case, near

GIB = 1 << 30


def memory_of(uuid, pid):
    """What that process has on that GPU, or None."""
    done = tap.wattmeter("info", "--json", uuid, timeout=120,
                         env=tap.environment(**tap.DRIVER))
    assert done.returncode == 0, done.stderr
    for gpu in json.loads(done.stdout)["gpus"]:
        for process in gpu["processes"] or []:
            if pid in (process["pid"], process["driver_pid"]):
                return process["gpu_memory_bytes"]
    return None


@case("memory: of a process that takes 1 GiB")
def _(folder):
    with nvml.Nvml() as driver:
        uuid = driver.text("nvmlDeviceGetUUID", driver.device(0))
    load = start_load(uuid)
    try:
        context = memory_of(uuid, load.pid)
        if context is None:
            raise Skip("the driver does not tell this process's memory (a container?)")
        tell(load, f"allocate {GIB}")
        time.sleep(0.5)
        taken = memory_of(uuid, load.pid)
    finally:
        load.stdin.close()
        load.wait()
    tables.show("memory: a process that takes 1 GiB, in MiB",
                ("its context alone", "afterwards", "difference"),
                [[f"{value / 2**20:.0f}" for value in (context, taken, taken - context)]])
    near(taken - context, GIB, 4 << 20, "bytes")
