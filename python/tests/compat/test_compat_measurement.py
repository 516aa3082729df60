# SPDX-License-Identifier: Apache-2.0
"""The programs of the thesis' documentation, with only the import changed."""

import re
import signal
import time
from pathlib import Path

import pytest

from machine import Machine, set_counter

IMPORT = """
from wattmeter.compat.measurement import EnergyMeasurementTool
from wattmeter.compat.measurement import AsynchronousMeasurementTool
import os, sys, time
num_epochs = 3
def train(): time.sleep(0.2)
def test(): time.sleep(0.01)
"""
EPOCHS = """
tracker = EnergyMeasurementTool(out_file='test_energy_measurement_tool.csv',gpu_num=0)
for epoch in range(num_epochs):
    tracker.start()
    train()
    test()
    tracker.stop()
"""
TABLE = """
tracker = AsynchronousMeasurementTool(out_file='test_asynchronous_measurement_tool.csv',gpu_num=0)
tracker.start(1)
for epoch in range(num_epochs):
    train()
    test()
tracker.stop()
"""
KWH = 3.6e6


def rows(machine: Machine, name: str) -> list:
    """The cells of the tool's file, as numbers; None is an empty one."""
    text = (machine.folder / f"test_{name}_measurement_tool.csv").read_text()
    assert not text or text.endswith("\n")
    return [
        [float(cell) if cell else None for cell in line.split(",")]
        for line in text.splitlines()
    ]


@pytest.fixture
def server(machine: Machine) -> Machine:
    """One package whose counter stands, and a GPU of 360 W: 0.0001 kWh a second."""
    machine.add_package(joules=1000)
    machine.add_gpus({"gpus": [{"power": 360, "utilization": 0.25, "temperature": 61}]})
    return machine


def test_epochs(server: Machine) -> None:
    out = server.run(IMPORT + EPOCHS)
    assert out == ""
    told = rows(server, "energy")
    assert len(told) == 3
    for elapsed, cpu, gpu in told:
        assert 0.2 < elapsed
        assert gpu == pytest.approx(elapsed * 1e-4, rel=0.1)


def test_energy_of_the_package(server: Machine) -> None:
    counter = server.folder / "sys/class/powercap/intel-rapl:0/energy_uj"
    program = """
tracker = EnergyMeasurementTool('test_energy_measurement_tool.csv')
tracker.start()
print("started", flush=True)
input()
tracker.stop()
"""
    process = server.start(IMPORT + program)
    assert process.stdout.readline() == "started\n"
    time.sleep(0.3)
    set_counter(counter, 1036)
    time.sleep(0.5)  # it is seen within the run, not at its end
    process.communicate("\n", timeout=300)
    assert process.returncode == 0
    ((_, cpu, _),) = rows(server, "energy")
    assert cpu == pytest.approx(36 / KWH, rel=1e-3)


def test_nested_and_left_open(server: Machine) -> None:
    program = """
tracker = EnergyMeasurementTool('test_energy_measurement_tool.csv')
tracker.start()
tracker.start()
time.sleep(0.1)
tracker.stop()
time.sleep(0.1)
tracker.stop()
tracker.start()
try:
    tracker.stop()
    tracker.stop()
except ValueError as error:
    print(error)
tracker.start()
"""
    assert server.run(IMPORT + program) == "nothing was started\n"
    inner, outer, empty = (row[0] for row in rows(server, "energy"))
    assert inner < outer and outer > 0.2 > 0.15 > inner and empty < 0.1


def test_file_is_overwritten(server: Machine) -> None:
    path = server.folder / "test_energy_measurement_tool.csv"
    path.write_text("old\n")
    server.run(IMPORT + "EnergyMeasurementTool('test_energy_measurement_tool.csv')")
    assert path.read_text() == ""


def test_the_cell_of_a_notebook_again(server: Machine) -> None:
    server.run(IMPORT + EPOCHS + EPOCHS + TABLE + TABLE)
    assert len(rows(server, "energy")) == 3
    assert len(rows(server, "asynchronous")) >= 1


@pytest.mark.parametrize("tool", ["Energy", "Asynchronous"])
def test_file_that_cannot_be(server: Machine, tool: str) -> None:
    program = f"""
try:
    {tool}MeasurementTool('none/file.csv')
except FileNotFoundError as error:
    print(error.filename)
"""
    assert server.run(IMPORT + program) == "none/file.csv\n"


def test_rows_are_there_at_once(server: Machine) -> None:
    process = server.start(IMPORT + EPOCHS + "print(1, flush=True)\ntime.sleep(60)")
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(rows(server, "energy")) == 3


def test_table(server: Machine) -> None:
    assert server.run(IMPORT + TABLE) == ""
    told = rows(server, "asynchronous")
    assert len(told) >= 1
    elapsed, cpu, use, heat, gpu, gpu_use, gpu_heat, watts = told[-1]
    assert 0.6 < elapsed
    assert gpu == pytest.approx(elapsed * 1e-4, rel=0.1), "kWh, not millijoules"
    assert heat is None, "there is no sensor"
    assert 0 <= use <= 100 and [gpu_use, gpu_heat, watts] == [25, 61, 360]


def test_intervals(server: Machine) -> None:
    program = TABLE.replace("start(1)", "start(interval=0.05)")
    server.run(IMPORT + program)
    told = rows(server, "asynchronous")
    assert len(told) >= 10
    assert [row[0] for row in told] == sorted(row[0] for row in told)
    assert [row[4] for row in told] == sorted(row[4] for row in told)


def test_never_stopped(server: Machine) -> None:
    """The original's child would keep the program from ending."""
    program = TABLE.replace("tracker.stop()", "").replace("start(1)", "start(0.05)")
    started = time.monotonic()
    server.run(IMPORT + program)
    assert time.monotonic() - started < 20
    assert len(rows(server, "asynchronous")) >= 10


def test_stop_and_start_again(server: Machine) -> None:
    program = """
tracker = AsynchronousMeasurementTool('test_asynchronous_measurement_tool.csv')
for _ in range(2):
    tracker.start(0.05)
    time.sleep(0.3)
    tracker.stop()
for call in (tracker.stop, lambda: tracker.start(0)):
    try:
        call()
    except ValueError as error:
        print("no")
tracker.start()
try:
    tracker.start()
except ValueError as error:
    print("no")
"""
    assert server.run(IMPORT + program) == "no\n" * 3
    times = [row[0] for row in rows(server, "asynchronous")]
    assert sum(after < before for before, after in zip(times, times[1:])) == 2


@pytest.mark.parametrize("program", [EPOCHS, TABLE])
def test_nothing_to_measure(machine: Machine, program: str) -> None:
    """A sentence each and empty cells, never 0."""
    process = machine.start(IMPORT + program)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    warnings = re.findall("UserWarning: (.*)", err)
    assert len(warnings) == 2, err
    assert err.count("<string>:") == 2, err  # the program is blamed for them
    cpu, gpu = sorted(warnings)
    assert cpu.startswith("CPU energy is not measured: rapl: no RAPL"), cpu
    assert gpu.startswith("GPU energy is not measured: nvml: no NVIDIA driver"), gpu
    name = "energy" if program is EPOCHS else "asynchronous"
    told = rows(machine, name)
    assert told
    for row in told:
        assert row[0] > 0.2 and row[1] is None and set(row[-1:]) == {None}, row


def test_wrong_gpu(server: Machine) -> None:
    program = """
for tool in (EnergyMeasurementTool, AsynchronousMeasurementTool):
    try:
        tool('file.csv', gpu_num=3)
    except ValueError as error:
        print(error)
"""
    out = server.run(IMPORT + program)
    assert re.match("('3' is not the number of a GPU.*\n){2}$", out), out


def test_chosen_gpu(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{"power": 100}, {"power": 360}]})
    machine.run(IMPORT + EPOCHS.replace("gpu_num=0", "gpu_num=1"))
    for elapsed, _, gpu in rows(machine, "energy"):
        assert gpu == pytest.approx(elapsed * 1e-4, rel=0.1)


def test_fork(server: Machine) -> None:
    program = """
tracker = EnergyMeasurementTool('test_energy_measurement_tool.csv')
tracker.start()
if os.fork() == 0:
    sys.exit(0)
os.wait()
tracker.stop()
"""
    server.run(IMPORT + program)
    assert len(rows(server, "energy")) == 1
