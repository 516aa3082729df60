# SPDX-License-Identifier: Apache-2.0
"""repeat(): functions and commands in turns, and what comes of it."""

import subprocess

import pytest

import wattmeter
from wattmeter import _core


def test_order():
    for seed in 0, 1, 2**63 - 1:
        for turn in range(0, 6, 2):
            forth = _core.repeat_order(seed, 3, turn)
            assert sorted(forth) == [0, 1, 2]
            assert _core.repeat_order(seed, 3, turn + 1) == forth[::-1]
    assert _core.repeat_order(1, 0, 0) == []


def test_functions(tmp_path):
    calls = []

    def short():
        calls.append("short")

    def long():
        calls.append("long")
        sum(range(2_000_000))

    target = tmp_path / "runs.sqlite"
    result = wattmeter.repeat(short, vs=long, n=6, warmup=1, record=target, seed=7)
    assert isinstance(result, type(wattmeter.compare({"a": target})))
    found = result.to_dict()
    assert found["sessions"] == ["short", "long"]
    cells = found["overall"]["cpu_time"]["sessions"]
    assert cells["long"]["paired"] and cells["short"]["runs"] == 6
    assert 0 < cells["short"]["value"] < cells["long"]["value"], "of a call each"
    assert cells["long"]["verdict"] == "more"
    assert result.untested is None and result.worst > 0
    assert "Time" in str(result) and "short" in str(result)
    # All of them are kept, and are compared again in the same way.
    again = wattmeter.compare({"again": target}).to_dict()
    assert again["overall"]["cpu_time"] == found["overall"]["cpu_time"]
    notes = wattmeter.read(target, run=0).report.notes
    assert notes["repeat.seed"] == "7" and int(notes["repeat.batch"]) >= 1
    assert calls.count("short") > 6 and calls.count("long") >= 8


def test_commands(tmp_path, capfd):
    one = wattmeter.repeat("sh -c 'echo said; exit 0'", n=2, warmup=0)
    assert one.to_dict()["sessions"] == ["sh -c 'echo said; exit 0'"]
    assert one.to_dict()["overall"]["time"]["sessions"]["sh -c 'echo said; exit 0'"]["runs"] == 2
    assert one.untested is not None
    assert capfd.readouterr().out == ""
    several = wattmeter.repeat(
        ["true"], vs=[["sh", "-c", "true"], "true --"], n=2, names=["a", "b", "c"]
    )
    found = several.to_dict()
    assert found["sessions"] == ["a", "b", "c"]
    assert found["references"] == {"b": "a", "c": "a"}
    assert found["overall"]["time"]["sessions"]["b"]["verdict"] == "not_tested"


def test_what_fails(tmp_path):
    target = tmp_path / "runs.sqlite"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        wattmeter.repeat(["sh", "-c", "exit 3"], n=2, warmup=0, record=target)
    assert caught.value.returncode == 3
    assert wattmeter.read(target).report.exit_code == 3, "what was measured is kept"
    with pytest.raises(wattmeter.Error) as caught:
        wattmeter.repeat("true", n=1, record=target)
    assert caught.value.status == "EEXIST"
    with pytest.raises(wattmeter.Error):
        wattmeter.repeat("/no/such/command", n=1)
    with pytest.raises(ZeroDivisionError):
        wattmeter.repeat(lambda: 1 / 0, n=1)
    for wrong in (
        {"n": 0},
        {"warmup": -1},
        {"vs": "true"},
        {"names": ["a", "b"]},
    ):
        with pytest.raises(ValueError):
            wattmeter.repeat("true", **wrong)
    with pytest.raises(ValueError):
        wattmeter.repeat("unbalanced 'quote", n=1)
