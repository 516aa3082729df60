# SPDX-License-Identifier: Apache-2.0
"""region: context manager and decorator, on functions of every kind."""

import asyncio
import contextlib
import contextvars
import copy
import inspect
import pickle
import threading
import time
import weakref

import pytest

import wattmeter
from wattmeter import _core


@wattmeter.region("plain")
def plain(a, b: int = 2) -> int:
    """Adds."""
    return a + b


@wattmeter.region("coroutine")
async def coroutine(seconds):
    await asyncio.sleep(seconds)
    return seconds


@wattmeter.region("generator")
def generator(count):
    got = []
    for i in range(count):
        got.append((yield i))
    return got


@wattmeter.region("steps")
async def steps(count):
    for i in range(count):
        try:
            yield i
        except KeyError:
            yield "caught"


class Model:
    @wattmeter.region("method")
    def method(self, x, *, y=0):
        return self, x + y

    @classmethod
    @wattmeter.region("class")
    def of_class(cls, x):
        return cls, x

    @wattmeter.region("static")
    @staticmethod
    def of_nothing(x):
        return x

    @property
    @wattmeter.region("property")
    def value(self):
        return 7


def calls(action):
    """(calls, unfinished) by name of the regions of `action`."""
    with wattmeter.track() as t:
        action()
    return {r.name: (r.calls, r.unfinished) for r in t.report.regions}


def test_a_decorated_function_is_the_function():
    assert plain(1) == 3 and plain(1, b=4) == 5
    assert plain.__name__ == "plain" and plain.__doc__ == "Adds."
    assert plain.__wrapped__(1) == 3
    assert str(inspect.signature(plain)) == "(a, b: int = 2) -> int"
    assert pickle.loads(pickle.dumps(plain)) is plain
    assert copy.deepcopy(plain) is plain
    assert weakref.ref(plain)() is plain
    assert "plain" in repr(plain)
    plain.note = 1
    assert plain.note == 1 and "note" in vars(plain)
    with pytest.raises(TypeError, match="argument"):
        plain()


def test_without_a_name_it_is_the_function_s():
    class Net:
        @wattmeter.region
        def forward(self, x):
            return x

        @wattmeter.region
        @staticmethod
        def load():
            return 2

    @wattmeter.region
    async def serve(x):
        return x

    def all_of_them():
        net = Net()
        assert (net.forward(1), net.load(), Net.load()) == (1, 2, 2)
        assert asyncio.run(serve(3)) == 3

    here = "test_without_a_name_it_is_the_function_s.<locals>."
    counts = {"Net.forward": (1, 0), "Net.load": (2, 0), "serve": (1, 0)}
    assert calls(all_of_them) == {here + name: count for name, count in counts.items()}
    for wrong, why in ((5, "must be a str"), (None, "must be a str"), (Net, "functions")):
        with pytest.raises(TypeError, match=why):
            wattmeter.region(wrong)


def test_region_objects_are_copied_and_pickled():
    for name in ("x", "ä€😀", "caf\udce9"):
        region = wattmeter.region(name)
        for same in (copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))):
            assert type(same(region)) is type(region) and same(region).name == name


def test_cloudpickle_takes_functions_along_that_others_do_not_find(python):
    """As the workers of joblib, Ray and Dask get them; pickle finds them by name."""
    pytest.importorskip("cloudpickle")
    done = python("""
        import pickle, subprocess, sys
        import cloudpickle, wattmeter

        @wattmeter.region("factorial")
        def factorial(n):
            return n * factorial(n - 1) if n > 1 else 1
        factorial.note = "mine"

        def make(factor):
            @wattmeter.region("local")
            def local(n): return n * factor
            return local

        class Model:
            @wattmeter.region("method")
            def method(self, n): return n + 1

        assert pickle.loads(pickle.dumps(factorial)) is factorial
        read = (
            "import pickle, sys, wattmeter\\n"
            "factorial, local, model = pickle.loads(sys.stdin.buffer.read())\\n"
            "with wattmeter.track() as t:\\n"
            "    print(factorial(5), factorial.note, factorial.__name__, local(3),"
            " model.method(1))\\n"
            "print({r.name: r.calls for r in t.report.regions})\\n"
        )
        subprocess.run([sys.executable, "-c", read], check=True,
                       input=cloudpickle.dumps((factorial, make(7), Model())))
        """)
    values, regions = done.stdout.splitlines()
    assert values == "120 mine factorial 21 2"
    assert eval(regions) == {"factorial": 5, "local": 1, "method": 1}


def test_methods_are_bound():
    model = Model()
    assert model.method(1, y=2) == (model, 3)
    assert Model.method(model, 1) == (model, 1)
    bound = model.method
    assert bound(1) == (model, 1) and bound.__self__ is model
    assert str(inspect.signature(bound)) == "(x, *, y=0)"
    assert model.of_class(5) == Model.of_class(5) == (Model, 5)
    assert model.of_nothing(5) == 5 and model.value == 7


def test_every_kind_of_function_keeps_its_kind():
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isgeneratorfunction(generator)
    assert inspect.isasyncgenfunction(steps)


def test_calls_are_counted_whatever_their_end():
    def action():
        plain(1)
        Model().method(1)
        with pytest.raises(TypeError):
            plain("x", 1)
        with pytest.raises(ZeroDivisionError):
            with wattmeter.region("failed"):
                1 / 0
        outer = wattmeter.region("outer")
        with outer:
            with outer:
                pass

    assert calls(action) == {
        "plain": (2, 0),
        "method": (1, 0),
        "failed": (1, 0),
        "outer": (2, 0),
    }


def test_a_generator_is_one_call_from_its_start_to_its_end():
    def action():
        assert list(generator(3)) == [0, 1, 2]
        one = generator(2)
        next(one)
        assert one.send("a") == 1
        with pytest.raises(StopIteration) as caught:
            one.send("b")
        assert caught.value.value == ["a", "b"]
        half = generator(2)
        next(half)
        half.close()
        thrown = generator(2)
        next(thrown)
        with pytest.raises(KeyError):
            thrown.throw(KeyError("x"))
        generator(2).close()

    assert calls(action) == {"generator": (4, 0)}


def test_tasks_do_not_mix():
    async def task(region, seconds):
        async with region as same:
            assert same is region
            await asyncio.sleep(seconds)
            async with region:
                await asyncio.sleep(0)

    async def main():
        region = wattmeter.region("task")
        await asyncio.gather(task(region, 0.02), task(region, 0.01), coroutine(0.03))

    assert calls(lambda: asyncio.run(main())) == {"task": (4, 0), "coroutine": (1, 0)}


def tree(report):
    """(path, calls, unfinished) of the regions."""
    found = {}
    paths = report.to_dict()["regions"]["by_path"]
    names = []
    for path in paths:
        parent = path["parent"]
        names.append((f"{names[parent]} > " if parent is not None else "") + path["name"])
        found[names[-1]] = (path["calls"], path["unfinished"])
    return found


def test_plain_with_keeps_the_times_of_tasks_apart():
    """Each is open from before its step to after it, by the clock of the test."""
    least, most = {}, {}

    async def work(name, before, after):
        start = time.perf_counter()
        with wattmeter.region(name):
            entered = time.perf_counter()
            before.set()
            await after.wait()
            least[name] = time.perf_counter() - entered
        most[name] = time.perf_counter() - start

    async def main():
        inside, go, end = asyncio.Event(), asyncio.Event(), asyncio.Event()
        first = asyncio.ensure_future(work("first", inside, go))
        await inside.wait()
        await asyncio.sleep(0.02)
        second = asyncio.ensure_future(work("second", go, end))
        await first
        await asyncio.sleep(0.05)
        end.set()
        await second

    with wattmeter.track() as t:
        asyncio.run(main())
    for name in ("first", "second"):
        assert least[name] <= t.report.regions[name].time.value <= most[name]
    assert t.report.stray_ends.value == 0 and list(tree(t.report)) == ["first", "second"]


def test_regions_of_tasks_nest_by_context():
    @wattmeter.region("step")
    def step():
        with wattmeter.region("inner"):
            pass

    @wattmeter.region("fetch")
    async def fetch():
        await asyncio.sleep(0)
        step()

    @wattmeter.region("rows")
    async def rows():
        for row in range(2):
            await asyncio.sleep(0)
            yield row

    async def handler(name):
        with wattmeter.region(name):
            await asyncio.gather(fetch(), fetch())
            async with wattmeter.region("db"):
                async for _ in rows():
                    with wattmeter.region("row"):
                        await asyncio.sleep(0)
                await asyncio.get_running_loop().run_in_executor(
                    None, contextvars.copy_context().run, step
                )

    async def main():
        step()
        await asyncio.gather(handler("a"), handler("b"))

    with wattmeter.track() as t:
        with wattmeter.region("main"):
            asyncio.run(main())
    expected = {"main": (1, 0), "main > step": (1, 0), "main > step > inner": (1, 0)}
    for name in ("main > a", "main > b"):
        expected.update({
            name: (1, 0),
            f"{name} > fetch": (2, 0),
            f"{name} > fetch > step": (2, 0),
            f"{name} > fetch > step > inner": (2, 0),
            f"{name} > db": (1, 0),
            f"{name} > db > rows": (1, 0),
            f"{name} > db > row": (2, 0),
            f"{name} > db > step": (1, 0),
            f"{name} > db > step > inner": (1, 0),
        })
    assert tree(t.report) == expected and t.report.stray_ends.value == 0


def test_blocks_of_tasks_by_way_of_contextlib_do_not_lie_in_each_other():
    @contextlib.contextmanager
    def step(name):
        with wattmeter.region(name):
            yield

    async def stack(name):
        with contextlib.ExitStack() as blocks:
            blocks.enter_context(wattmeter.region(name))
            await asyncio.sleep(0)

    async def async_stack(name):
        async with contextlib.AsyncExitStack() as blocks:
            blocks.enter_context(wattmeter.region(name))
            await asyncio.sleep(0)

    async def generator(name):
        with step(name):
            await asyncio.sleep(0)

    async def main():
        works = (stack, async_stack, generator)
        await asyncio.gather(*(work(work.__name__) for work in works for _ in range(2)))

    with wattmeter.track() as t:
        asyncio.run(main())
    names = ("stack", "async_stack", "generator")
    assert tree(t.report) == {name: (2, 0) for name in names}


def test_a_region_ends_itself():
    """In generators that are consumed in turns, and where stacks are closed late."""

    def steps(name):
        with wattmeter.region(name):
            yield

    def action():
        first, second = steps("first"), steps("second")
        next(first)
        next(second)
        assert next(first, None) is None
        with wattmeter.region("after"):
            pass
        assert next(second, None) is None

    with wattmeter.track() as t:
        action()
    assert tree(t.report) == {
        "first": (1, 0), "first > second": (1, 0), "first > second > after": (1, 0)
    }
    assert t.report.stray_ends.value == 0


def test_contexts_of_what_ends_elsewhere():
    """An asynchronous generator is closed by the loop; tasks are cancelled; a task goes on
    when the region is over that it was started in."""

    async def endless():
        with wattmeter.region("endless"):
            while True:
                yield

    async def late(over):
        await over.wait()
        with wattmeter.region("late"):
            await asyncio.sleep(0)

    async def main():
        over = asyncio.Event()
        with wattmeter.region("request"):
            task = asyncio.ensure_future(late(over))
            await asyncio.sleep(0)
        over.set()
        await task
        lost = endless()
        await lost.__anext__()

        async def wait():
            with wattmeter.region("cancelled"):
                await asyncio.sleep(1000)

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with wattmeter.track() as t:
        asyncio.run(main())
    regions = {r.name: (r.calls, r.unfinished) for r in t.report.regions}
    assert regions == {name: (1, 0) for name in ("request", "late", "endless", "cancelled")}
    assert "late" in tree(t.report) and t.report.stray_ends.value == 0


def test_many_blocks_of_a_task_are_open_at_once():
    async def main():
        region = wattmeter.region("block")
        with contextlib.ExitStack() as blocks:
            for _ in range(20000):
                blocks.enter_context(region)
                await asyncio.sleep(0)

    with wattmeter.track() as t:
        asyncio.run(main())
    assert sum(r.calls for r in t.report.regions) == 20000
    assert sum(r.unfinished for r in t.report.regions) == 0
    assert t.report.stray_ends.value == 0


def test_a_generator_is_the_first_of_its_context(python):
    done = python("""
        import asyncio, wattmeter

        @wattmeter.region("rows")
        async def rows():
            yield 1

        async def main():
            async for _ in rows():
                with wattmeter.region("row"):
                    await asyncio.sleep(0)

        with wattmeter.track() as t:
            asyncio.run(main())
        paths = t.report.to_dict()["regions"]["by_path"]
        print(sorted((path["name"], path["parent"]) for path in paths))
        """)
    assert eval(done.stdout) == [("row", None), ("rows", None)]


def test_an_async_generator_takes_what_is_sent_and_thrown():
    async def main():
        assert [x async for x in steps(3)] == [0, 1, 2]
        one = steps(3)
        assert await one.__anext__() == 0
        assert await one.athrow(KeyError("x")) == "caught"
        assert await one.asend(None) == 1
        await one.aclose()
        with pytest.raises(ValueError):
            two = steps(3)
            await two.__anext__()
            await two.athrow(ValueError("x"))

    assert calls(lambda: asyncio.run(main())) == {"steps": (3, 0)}


def test_an_exception_in_async_with_goes_through():
    async def main():
        async with wattmeter.region("failed"):
            raise KeyError("mine")

    def action():
        with pytest.raises(KeyError):
            asyncio.run(main())

    assert calls(action) == {"failed": (1, 0)}


def test_functions_of_the_extension():
    def action():
        assert _core.region_is_on()
        _core.region_begin("begun")
        number = _core.region_start("started")
        _core.region_end()
        _core.region_stop(number)
        _core.region_end()  # one too many is counted, and hurts nobody

    assert calls(action) == {"begun": (1, 0), "started": (1, 0)}
    assert not _core.region_is_on()


def test_names():
    def action():
        for name in ("", "ä€😀", "a" * 100, "caf\udce9"):
            with wattmeter.region(name):
                pass

    assert wattmeter.region("ä").name == "ä"
    assert len(calls(action)) == 4


@pytest.mark.parametrize("name", [b"x", 1, None])
def test_a_name_is_a_str(name):
    with pytest.raises(TypeError):
        wattmeter.region(name)
    with pytest.raises(TypeError):
        _core.region_begin(name)
    with pytest.raises(TypeError):
        _core.region_start(name)


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        wattmeter.region("a\0b")
    with pytest.raises(TypeError):
        wattmeter.region()
    with pytest.raises(TypeError):
        wattmeter.region("a", "b")
    with pytest.raises(TypeError, match="decorates functions"):
        wattmeter.region("x")(Model)
    with pytest.raises(TypeError):
        wattmeter.region("x")(5)
    with pytest.raises(TypeError):
        _core.region_stop("x")
    for name in ("enter", "leave", "open", "open_apart"):
        function = getattr(_core, f"region_{name}")
        with pytest.raises(TypeError, match="region is needed"):
            function("x")
    with pytest.raises(TypeError, match="call is needed"):
        _core.region_close(wattmeter.region("x"))
    with pytest.raises(OverflowError):
        _core.region_stop(-1)
    assert wattmeter.region(name="x").name == "x"


def test_a_file_gets_the_rows_of_all_threads(python, tmp_path, monkeypatch):
    monkeypatch.setenv("WATTMETER_REGIONS", str(tmp_path / "sub.sqlite"))
    python("""
        import threading, wattmeter
        @wattmeter.region("b")
        def b(): pass
        def work():
            for _ in range(20):
                with wattmeter.region("a"):
                    b()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """)
    import sqlite3

    with sqlite3.connect(str(tmp_path / "sub.sqlite")) as database:
        (rows,) = database.execute("SELECT count(*) FROM data").fetchone()
    assert rows == 3 * 20 * 2 * 2


def test_joules_of_threads_go_by_cpu_time(no_gpus):
    """Of two at once, one sleeps until the other has worked for so long by its clock."""
    over = threading.Event()

    def work():
        with wattmeter.region("work"):
            while time.thread_time() < 0.5:
                pass
        over.set()

    with wattmeter.track() as tracker:
        thread = threading.Thread(target=work)
        thread.start()
        with wattmeter.region("wait"):
            over.wait()
        thread.join()
    regions = tracker.report.to_dict()["regions"]["by_name"]
    cost = {region["name"]: region["exclusive"] for region in regions}
    assert cost["work"]["cpu_time"] == pytest.approx(0.5, abs=0.1)
    tree = {name: cost[name]["energy"]["tree"] for name in cost}
    assert tree["wait"]["energy"] < 0.1 * tree["work"]["energy"]
    joules = {name: cost[name]["energy"]["cpu"] for name in cost}
    assert joules["wait"]["energy"] < joules["work"]["energy"]
    # The division is in the range, beside the estimate's own error.
    assert joules["wait"]["uncertainty_percent"] >= 50
