# SPDX-License-Identifier: Apache-2.0
"""check_info.py - `wattmeter info --json` beside `nvidia-smi -q -x`, value by value."""

import json

import smi
import tables
import tap
from tap import case

PROCESS_SLACK = 64 << 20


def value_of(gpu, key):
    """The value, and why there is none."""
    told = gpu
    for part in key.split("."):
        told = told.get(part)
        if told is None:
            return None, gpu["why"].get(key, "no reason given")
    return told, ""


def throttle_of(text):
    return None if text is None else frozenset(text.split(", ")) - {"none"}


def compare(ours, before, after):
    """Rows of a table, and the keys that do not agree."""
    rows, wrong = [], []

    def judge(key, told, seen, agrees, why=""):
        if any(value is smi.NOT_SHOWN for value in seen):
            verdict = "-"
        else:
            verdict = "same" if agrees else "DIFFERENT"
        if verdict == "DIFFERENT":
            wrong.append(f"{key}: {told!r} ({why}), nvidia-smi {seen!r}")
        shown = [repr(value) for value in seen]
        rows.append((key, f"n/a: {why}" if told is None else repr(told),
                     " .. ".join(dict.fromkeys(shown)), verdict))

    for row in smi.ROWS:
        told, why = value_of(ours, row.key)
        seen = (before.values[row.key], after.values[row.key])
        judge(row.key, told, seen, smi.NOT_SHOWN in seen or row.agrees(told, seen), why)

    told, why = value_of(ours, "clocks.throttle")
    told = throttle_of(told)
    judge("clocks.throttle", told and sorted(told), (before.throttle, after.throttle),
          told in (before.throttle, after.throttle), why)

    told = sorted((mig["gpu_instance"], mig["compute_instance"], mig["multiprocessors"],
                   mig["memory_total_bytes"] >> 20) for mig in ours["migs"])
    judge("migs", told, (before.migs, after.migs), told in (before.migs, after.migs))
    judge_processes(ours, before, after, judge)
    return rows, wrong


def judge_processes(ours, before, after, judge):
    """Of processes that were there before and after alone."""
    listed = {process["driver_pid"]: process["gpu_memory_bytes"]
              for process in ours["processes"] or []}
    for pid in sorted(before.processes.keys() & after.processes.keys()):
        seen = (before.processes[pid], after.processes[pid])
        known = [memory for memory in seen if memory is not None]
        told = listed.get(pid)
        agrees = pid in listed and (
            told is None and not known or told is not None and known and
            min(known) - PROCESS_SLACK <= told <= max(known) + PROCESS_SLACK)
        judge(f"memory of process {pid}", told, seen, agrees,
              "" if pid in listed else "it is not listed")


@case("info: each value is nvidia-smi's")
def _(folder):
    before = smi.ask()
    done = tap.wattmeter("info", "--json", timeout=120,
                         env=tap.environment(**tap.DRIVER))
    assert done.returncode == 0, done.stderr
    after = smi.ask()
    told = {gpu["uuid"]: gpu for gpu in json.loads(done.stdout)["gpus"]
            if gpu["source"] == "nvml"}
    assert set(told) == set(before), (sorted(told), sorted(before))
    failures = []
    for uuid, gpu in told.items():
        rows, wrong = compare(gpu, before[uuid], after[uuid])
        tables.show(f"info: GPU {gpu['index']}, {gpu['name']}",
                    ("value", "wattmeter", "nvidia-smi before .. after", ""), rows,
                    "'-': this nvidia-smi does not show it")
        failures += [f"GPU {gpu['index']}: {line}" for line in wrong]
    assert not failures, "\n".join(failures)
