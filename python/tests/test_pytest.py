# SPDX-License-Identifier: Apache-2.0
"""wattmeter.pytest in sessions of pytest of their own."""

import re
import textwrap

import pytest
from machine import SOURCE

RUN = """
import sys
import pytest
sys.exit(pytest.main(["-p", "no:cacheprovider", "-p", "wattmeter.pytest", *sys.argv[1:]]))
"""


@pytest.fixture
def session(machine):
    """A function that runs tests, and gives the status and what was printed."""

    def run(tests, *words):
        (machine.folder / "test_it.py").write_text(textwrap.dedent(tests))
        process = machine.start(RUN, "test_it.py", *words)
        out, err = process.communicate(timeout=300)
        return process.returncode, out + err

    return run


def line_of(out, name):
    return next(line for line in out.splitlines() if line.startswith(f"test_it.py::{name} "))


def test_a_test_fails_where_the_interval_lies_above_its_limit(session, machine):
    machine.add_gpus({"gpus": [{"power": 200, "energy": {}}]})
    status, out = session("""
        import time, pytest

        @pytest.mark.energy(max_joules=1e6, max_seconds=1e4)
        def test_cheap(tmp_path):
            assert tmp_path.exists()
            time.sleep(0.3)

        @pytest.mark.energy(max_joules=5)
        def test_joules():
            time.sleep(0.3)

        @pytest.mark.energy(max_seconds=0.01, repeats=7)
        def test_seconds():
            time.sleep(0.02)
        """)
    assert status == 1 and "2 failed, 1 passed" in out, out
    assert line_of(out, "test_cheap").count("ok: at most") == 2
    assert re.search(r"energy of a call: .* J.*\), 6 runs; at most 5.00 J wanted", out), out
    assert re.search(r"time of a call: .* ms\), 7 runs; at most 10.00 ms wanted", out), out
    assert "above: at most 10.00 ms" in line_of(out, "test_seconds")


def test_how_often_a_test_runs(session):
    status, out = session("""
        import pytest
        calls = []

        @pytest.mark.energy(max_seconds=1e4, repeats=6)
        def test_it():
            calls.append(0)
            __import__("time").sleep(0.26)  # longer than a run has to be

        def test_calls():
            assert len(calls) == 7, calls
        """)
    assert status == 0, out


def test_what_is_estimated_says_so_and_hardly_fails(session):
    status, out = session("""
        import pytest

        @pytest.mark.energy(max_joules=1e6)
        def test_it():
            sum(range(100_000))
        """)
    assert status == 0 and "estimated)" in line_of(out, "test_it"), out
    assert "estimated: nothing here measures the energy of the CPUs" in out


def test_the_fixture_measures_a_function(session):
    status, out = session("""
        import pytest

        def work(count, *, step):
            sum(range(0, count, step))

        def test_cost(energy):
            cost = energy(work, 100_000, step=2, max_seconds=1000, repeats=8)
            assert cost.runs == 8 and 0 < cost.time.low <= cost.time.value <= cost.time.high
            assert cost.energy.value > 0 and cost.energy.unit == "J"

        def test_above(energy):
            energy(work, 1_000_000, step=1, max_seconds=1e-6)
        """)
    assert status == 1 and "1 failed, 1 passed" in out, out
    assert "8 runs" in line_of(out, "test_cost") and "at most 1.000 µs wanted" in out


def test_a_wrong_limit_of_the_fixture_is_one_line(session):
    status, out = session("def test_it(energy): energy(print, max_joules='5')")
    assert status == 1 and "\nenergy(): max_joules='5' is not a number above 0\n" in out, out
    assert "_pytest" not in out and "raise ValueError" not in out


def test_the_plugin_is_registered_once(session, machine):
    """As by pip, and by its name."""
    project = (SOURCE / "pyproject.toml").read_text()
    entry = re.search(r'pytest11\]\n(?:#.*\n)*"?([\w.]+)"? = "(.*)"', project)
    folder = machine.folder / "wattmeter-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: wattmeter\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(f"[pytest11]\n{entry[1]} = {entry[2]}\n")
    status, out = session("def test_it(energy): pass")
    assert status == 0, out
    assert "plugins: " in out and "wattmeter-1" in out, out


def test_every_test_by_an_option(session):
    tests = """
        import pytest

        def test_plain():
            pass

        def test_failing():
            assert 1 == 2

        @pytest.mark.skip
        def test_skipped():
            pass
        """
    status, out = session(tests)
    assert status == 1 and "time and energy" not in out
    status, out = session(tests, "--wattmeter")
    assert status == 1 and "1 run " in line_of(out, "test_plain") and "assert 1 == 2" in out
    assert line_of(out, "test_failing") and "test_it.py::test_skipped" not in out


def test_what_fails_or_is_skipped_in_a_measured_test(session):
    status, out = session("""
        import pytest

        @pytest.mark.energy(max_joules=1)
        def test_failing():
            raise RuntimeError("of its own")

        @pytest.mark.energy(max_joules=1)
        def test_skipping():
            pytest.skip("not here")
        """)
    assert status == 1 and "1 failed, 1 skipped" in out and "of its own" in out, out


@pytest.mark.parametrize(
    "test, said",
    [
        ("@pytest.mark.energy(max_joule=1)\ndef test_it(): pass",
         "takes max_joules, max_seconds and repeats, not max_joule=1"),
        ("@pytest.mark.energy(repeats=3)\ndef test_it(): pass", "repeats=3 is not a whole"),
        ("@pytest.mark.energy(max_joules='5 J')\ndef test_it(): pass",
         "max_joules='5 J' is not a number above 0"),
        ("@pytest.mark.energy(max_joules=True)\ndef test_it(): pass",
         "max_joules=True is not a number above 0"),
        ("@pytest.mark.energy(max_seconds=-5)\ndef test_it(): pass",
         "max_seconds=-5 is not a number above 0"),
        ("@pytest.mark.energy(max_joules=float('nan'))\ndef test_it(): pass",
         "max_joules=nan is not a number above 0"),
        ("@pytest.mark.energy\ndef test_it(): pass", "give max_joules or max_seconds"),
        ("@pytest.mark.energy(1)\nasync def test_it(): pass", "coroutines"),
        (
            "import unittest\nclass TestIt(unittest.TestCase):\n"
            "    @pytest.mark.energy(1)\n    def test_it(self): pass",
            "unittest.TestCase",
        ),
    ],
    ids=[
        "misspelt",
        "too few",
        "a text",
        "a bool",
        "negative",
        "nan",
        "no limit",
        "coroutine",
        "unittest",
    ],
)
def test_a_wrong_mark_is_an_error_of_its_test_alone(session, test, said):
    status, out = session(f"import pytest\n{test}\ndef test_other(): pass")
    (line,) = [line for line in out.splitlines() if line.startswith("@pytest.mark.energy: ")]
    assert status == 1 and "1 passed, 1 error" in out and said in line, out
    assert "Traceback" not in out and "INTERNALERROR" not in out


def test_limits_are_in_the_reports(session, machine):
    """As pytest-xdist hands them on, and JUnit's file has them."""
    status, out = session(
        "import pytest\n@pytest.mark.energy(max_seconds=1000)\ndef test_it(): pass",
        "--junit-xml=out.xml",
    )
    assert status == 0, out
    text = (machine.folder / "out.xml").read_text()
    assert 'property name="wattmeter"' in text and "time_limit" in text
