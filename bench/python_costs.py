# SPDX-License-Identifier: Apache-2.0
"""One tool in an interpreter of its own, for python.py: python_costs.py TOOL WHAT SCRATCH.
What each tool is asked for is what its manual shows, at ten samples a second."""

import asyncio
import contextlib
import os
import sys
import threading
import time

# A tracker's ring holds several rounds, and has been filled once when it is warm. A region
# of a task takes twice the room, and is never folded.
ROUND, TASK_ROUND, WARM = 10_000, 2_000, 10


class Tool:
    """start() gives a session, which stop(session) ends; block(session, count) enters and
    leaves so many blocks of code, and call(session) is a decorated function: a tool
    without one is asked for blocks instead, which is for floors. recorded(session) is the
    number of blocks and calls in its report. `in_task`: all of that in a task of asyncio."""

    def __init__(self, start, stop, block=None, call=None, recorded=None, in_task=False):
        self.start, self.stop, self.block, self.call = start, stop, block, call
        self.recorded, self.in_task = recorded, in_task

    def round(self):
        return TASK_ROUND if self.in_task else ROUND


def nothing():
    pass


async def nothing_async():
    pass


def wattmeter(_):
    from wattmeter import region, track

    def block(_, count=1):
        for _ in range(count):
            with region("block"):
                pass

    return Tool(lambda: track(interval=0.1).start(), lambda session: session.stop(), block,
                lambda _: region("call")(nothing),
                lambda session: sum(one.calls for one in session.report.regions))


def wattmeter_held(scratch):
    tool = wattmeter(scratch)
    from wattmeter import region

    held = region("block")

    def block(_, count=1):
        for _ in range(count):
            with held:
                pass

    tool.block = block
    return tool


def in_task(scratch, coroutine):
    """wattmeter, with the blocks of a coroutine function that takes their number."""
    tool = wattmeter(scratch)

    def block(_, count=1):
        with contextlib.suppress(StopIteration):
            coroutine(count).send(None)

    return Tool(tool.start, tool.stop, block, recorded=tool.recorded, in_task=True)


def wattmeter_task(scratch):
    from wattmeter import region

    async def blocks(count):
        for _ in range(count):
            with region("block"):
                pass

    return in_task(scratch, blocks)


def wattmeter_task_inside(scratch):
    from wattmeter import region

    async def blocks(count):
        with region("outer"):
            for _ in range(count):
                with region("block"):
                    pass

    return in_task(scratch, blocks)


def wattmeter_task_call(scratch):
    from wattmeter import region

    decorated = region("call")(nothing)

    async def calls(count):
        with region("outer"):
            for _ in range(count):
                decorated()

    return in_task(scratch, calls)


def wattmeter_task_await(scratch):
    from wattmeter import region

    decorated = region("call")(nothing_async)

    async def calls(count):
        for _ in range(count):
            await decorated()

    return in_task(scratch, calls)


def coroutine(scratch):
    """A program that nobody measures."""
    async def calls(count):
        for _ in range(count):
            await nothing_async()

    tool = in_task(scratch, calls)
    tool.start, tool.stop, tool.recorded = nothing, lambda _: None, None
    return tool


def wattmeter_compat(_):
    from wattmeter.compat.gpu_tracker import Tracker

    def start():
        session = Tracker(sleep_time=0.1, disable_logs=True)
        session.start()
        return session

    return Tool(start, lambda session: session.stop())


def lock(_):
    """A context manager in C."""
    held = threading.Lock()

    def block(_, count=1):
        for _ in range(count):
            with held:
                pass

    return Tool(nothing, lambda _: None, block)


def clock(_):
    def block(_, count=1):
        now = time.perf_counter
        for _ in range(count):
            now()
            now()

    return Tool(nothing, lambda _: None, block)


def function(_):
    """A program that nobody measures."""
    return Tool(nothing, lambda _: None, None, lambda _: nothing)


def thread(_):
    """A thread is started, woken and joined."""
    def start():
        event = threading.Event()
        waiting = threading.Thread(target=event.wait)
        waiting.start()
        return event, waiting

    def stop(session):
        session[0].set()
        session[1].join()

    return Tool(start, stop)


def repeat(pair):
    def block(session, count=1):
        for _ in range(count):
            pair(session)

    return block


def gpu_tracker(scratch):
    from gpu_tracker import SubTracker, Tracker, sub_track

    file = os.path.join(scratch, f"{os.getpid()}.csv")

    def start():
        session = Tracker(sleep_time=0.1, disable_logs=True)
        session.start()
        return session

    def pair(_):
        with SubTracker("block", sub_tracking_file=file):
            pass

    return Tool(start, lambda session: session.stop(), repeat(pair),
                lambda _: sub_track("call", sub_tracking_file=file)(nothing))


def codecarbon(_):
    from codecarbon import OfflineEmissionsTracker, track_emissions

    options = {"country_iso_code": "FRA", "save_to_file": False, "log_level": "critical",
               "measure_power_secs": 0.1, "allow_multiple_runs": True}

    def start():
        session = OfflineEmissionsTracker(**options)
        session.start()
        return session

    def pair(session):
        session.start_task("block")
        session.stop_task("block")

    return Tool(start, lambda session: session.stop(), repeat(pair),
                lambda _: track_emissions(offline=True, **options)(nothing))


def zeus(_):
    from zeus.monitor import ZeusMonitor

    def start():
        session = ZeusMonitor()
        session.begin_window("run", sync_execution=False)
        return session

    def pair(session):
        session.begin_window("block", sync_execution=False)
        session.end_window("block", sync_execution=False)

    return Tool(start, lambda session: session.end_window("run", sync_execution=False), repeat(pair))


def nvitop(_):
    from nvitop import ResourceMetricCollector

    def start():
        session = ResourceMetricCollector(devices=[], interval=0.1)
        session.activate("run")
        return session

    def pair(session):
        with session("block"):
            pass

    return Tool(start, lambda session: session.deactivate("run"), repeat(pair))


def tirex_tracker(_):
    from tirex_tracker import start_tracking, stop_tracking, tracked, tracking

    def pair(_):
        with tracking():
            pass

    return Tool(lambda: start_tracking(poll_intervall_ms=100), stop_tracking, repeat(pair),
                lambda _: tracked(nothing))


TOOLS = {tool.__name__: tool for tool in (wattmeter, wattmeter_held, wattmeter_task, wattmeter_task_inside,
                                          wattmeter_task_call, wattmeter_task_await, coroutine,
                                          wattmeter_compat, lock, clock, function, thread, gpu_tracker, codecarbon, zeus, nvitop, tirex_tracker)}


def rounds_of(run, most):
    """Seconds of one, by rounds; between them the tracker takes what there is. A ring's
    pages cost more in the first rounds, which are left out."""
    now = time.perf_counter

    def one():
        began = now()
        run(1)
        return now() - began

    quickest = min(one() for _ in range(1 if one() > 0.01 else 9))
    count = max(1, min(most, int(0.2 / quickest)))
    first, rounds = (-WARM, 30) if count == most else (0, min(count, 3))
    for number in range(first, rounds):
        began = now()
        run(count)
        seconds = (now() - began) / count
        if number >= 0:
            yield seconds
        time.sleep(0.005)


def time_blocks(tool, session):
    return rounds_of(lambda count: tool.block(session, count), tool.round())


def time_calls(tool, session):
    if not tool.call:
        return time_blocks(tool, session)
    function = tool.call(session)

    def run(count):
        for _ in range(count):
            function()

    return rounds_of(run, tool.round())


def time_sessions(tool, pause):
    """The first one, then more of them for about a second. What a user feels is one after
    a pause, when the caches are another's."""
    now = time.perf_counter
    end = now() + 1
    for number in range(41):
        if number > 1 and now() > end:
            break
        began = now()
        tool.stop(tool.start())
        yield now() - began
        time.sleep(pause)


def values_of(measure, tool, session):
    async def task():
        return list(measure(tool, session))

    return asyncio.run(task()) if tool.in_task else list(measure(tool, session))


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def what_stays(tool):
    """Bytes, threads and descriptors that 1000 sessions leave, after the first 100."""
    before = None
    for number in range(1100):
        if number == 100:
            before = resident(), *(len(os.listdir(f"/proc/self/{name}")) for name in ("task", "fd"))
        session = tool.start()
        tool.block(session)
        tool.stop(session)
    after = resident(), *(len(os.listdir(f"/proc/self/{name}")) for name in ("task", "fd"))
    return (new - old for new, old in zip(after, before))


def main():
    name, what, scratch = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        tool = TOOLS[name](scratch)
        if what == "sessions":
            values = list(time_sessions(tool, 0.01))
        elif what == "sessions-at-once":
            values = list(time_sessions(tool, 0))
        elif what == "stays":
            values = list(what_stays(tool))
        elif what == "idle-blocks":
            values = list(time_blocks(tool, None))
        elif what == "idle-calls":
            values = list(time_calls(tool, None))
        else:
            session = tool.start()
            if what in ("blocks", "calls"):
                values = values_of(time_blocks if what == "blocks" else time_calls, tool, session)
            else:
                time.sleep(float(what))
                values = []
            tool.stop(session)
            if tool.recorded and values and tool.recorded(session) < WARM * tool.round():
                raise RuntimeError("the report lacks regions")
    print(*values)


main()
