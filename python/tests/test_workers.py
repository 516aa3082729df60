# SPDX-License-Identifier: Apache-2.0
"""Regions of worker processes, whenever these were started and however long they live."""

import multiprocessing
import threading
import time

import pytest

import wattmeter

pytestmark = pytest.mark.usefixtures("no_gpus")

WORKERS = """
    import multiprocessing, sys, wattmeter

    def work(count):
        for _ in range(count):
            with wattmeter.region("work"):
                pass
        return count

    if __name__ == "__main__":
        context = multiprocessing.get_context(sys.argv[1])
        with wattmeter.track() as t:
            work(10)
            with context.Pool(2) as pool:
                pool.map(work, [100, 200, 300], chunksize=1)
                pool.close()
                pool.join()
        region = t.report.regions["work"]
        print(region.calls, region.unfinished, t.report["dropped_events"].value)
    """


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_lose_no_regions_and_double_none(python, method):
    assert python(WORKERS, method).stdout.split() == ["610", "0", "0.0"]


# Before the first tracker a worker searches for it once per tick of the kernel, and so may
# miss it for 10 ms at most. The warm-up is longer than that.
EARLIER = """
    import os, sys, time, wattmeter

    def warm_up(seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with wattmeter.region("warm-up"):
                pass
        return os.getpid()

    def work(number):
        with wattmeter.region("work"):
            return number

    class Items:
        def __len__(self):
            return 6

        def __getitem__(self, number):
            warm_up(0.1)
            return work(number)

    def starmap(pool):
        return lambda: [pool.map(warm_up, [0.1] * 2), pool.map(work, range(6))]

    def make(kind):
        if kind == "loky":
            from joblib import Parallel, delayed
            return lambda: [Parallel(2)(delayed(f)(x) for x in xs)
                            for f, xs in ((warm_up, [0.1] * 2), (work, range(6)))]
        if kind == "DataLoader":
            from torch.utils.data import DataLoader
            loader = DataLoader(Items(), num_workers=2, persistent_workers=True)
            return lambda: list(loader)
        if kind == "executor":
            from concurrent.futures import ProcessPoolExecutor
            pool = ProcessPoolExecutor(2)
            return lambda: [list(pool.map(warm_up, [0.1] * 2)), list(pool.map(work, range(6)))]
        import multiprocessing
        return starmap(multiprocessing.get_context(kind).Pool(2))

    def calls(tracker):
        return tracker.report.regions["work"].calls

    if __name__ == "__main__":
        run = make(sys.argv[1])
        run()
        with wattmeter.track() as first:
            run()
        run()
        with wattmeter.track() as outer:
            with wattmeter.track() as inner:
                run()
        print(calls(first), calls(inner))
    """


@pytest.mark.parametrize(
    "kind", ["fork", "spawn", "forkserver", "executor", "loky", "DataLoader"]
)
def test_workers_that_were_started_before_a_tracker_join_it(python, kind):
    pytest.importorskip({"loky": "joblib", "DataLoader": "torch"}.get(kind, "sys"))
    assert python(EARLIER, kind).stdout.split() == ["6", "6"]


def job(_):
    for _ in range(100):
        with wattmeter.region("job"):
            pass


def test_workers_that_outlive_a_tracker_are_in_the_next_one():
    calls, pools = [], []
    for _ in range(3):
        with wattmeter.track() as tracker:
            if not pools:
                pools.append(multiprocessing.get_context("fork").Pool(2))
            pools[0].map(job, range(6))
        calls.append(tracker.report.regions["job"].calls)
        pools[0].map(job, range(6))
    pools[0].terminate()
    assert calls == [600] * 3


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def measure_work(connection):
    """Sends the CPU time inside and around the regions of each name. The regions are kept, so
    that each call has a copy of its name elsewhere."""
    inside, around, kept = {}, {}, []

    def mark(name, work):
        region = wattmeter.region(name)
        kept.append(region)
        begin = time.thread_time()
        with region:
            inner = time.thread_time()
            work()
            inside[name] = inside.get(name, 0) + time.thread_time() - inner
        around[name] = around.get(name, 0) + time.thread_time() - begin

    def item():
        mark("decode", lambda: burn(0.0003))
        mark("wait", lambda: time.sleep(0.002))

    for _ in range(100):
        mark("item", item)
        for _ in range(30):
            mark("mostly short", lambda: None)
        mark("mostly short", lambda: time.sleep(0.002))
    connection.send((inside, around))


def test_cpu_time_of_many_workers_is_what_their_threads_had():
    context = multiprocessing.get_context("fork")
    with wattmeter.track() as tracker:
        pipes = [context.Pipe() for _ in range(8)]
        workers = [context.Process(target=measure_work, args=(end,)) for _, end in pipes]
        for worker in workers:
            worker.start()
        measured = [pipe.recv() for pipe, _ in pipes]
        for worker in workers:
            worker.join()
    for name in ("item", "decode", "wait", "mostly short"):
        region = tracker.report.regions[name]
        if name != "mostly short":
            assert region.clocked_calls == region.calls == 800
        assert region.cpu_time.low <= sum(around[name] for _, around in measured)
        assert region.cpu_time.high >= sum(inside[name] for inside, _ in measured)
    is_by_time = any(one.clocked_calls < one.calls for one in tracker.report.regions)
    assert ("~ partly by time" in tracker.report.to_text()) == is_by_time


def test_workers_find_the_tracker_of_another_thread():
    calls = []

    def measure(pool):
        with wattmeter.track() as tracker:
            pool.map(job, range(6))
        calls.append(tracker.report.regions["job"].calls)

    with multiprocessing.get_context("fork").Pool(2) as pool:
        for _ in range(3):
            thread = threading.Thread(target=measure, args=(pool,))
            thread.start()
            thread.join()
    assert calls == [600] * 3


def test_a_process_without_a_tracker_leaves_no_link(python):
    """Nor one that had several."""
    python(
        """
        import glob, os, wattmeter
        links = lambda: glob.glob(f"/dev/shm/wattmeter-*-of-{os.getpid()}-*")
        with wattmeter.track():
            outer = os.readlink(*links())
            with wattmeter.track():
                assert os.readlink(*links()) != outer
            assert os.readlink(*links()) == outer
        assert links() == []
        """
    )
