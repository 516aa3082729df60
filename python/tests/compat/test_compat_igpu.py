# SPDX-License-Identifier: Apache-2.0
"""The programs of igpu's documentation, with only the import changed."""

import json
import os
import pwd
import re
import subprocess
import sys

import pytest

from machine import SOURCE, Machine

IMPORT = "import wattmeter.compat.igpu as igpu\n"
BOARD = (SOURCE / "tests/data/gpus/igpu-0.1.2.txt").read_text()


@pytest.fixture
def gtx(machine: Machine) -> Machine:
    """The machine with four GTX 1080 Ti of igpu's documentation."""
    machine.add_gpus("igpu")
    return machine


def tell(machine: Machine, expression: str, **variables: str):
    program = IMPORT + f"import json, math\nprint(json.dumps({expression}))"
    return json.loads(machine.run(program, **variables))


def failure(machine: Machine, statement: str, **variables: str) -> str:
    """What the statement raises."""
    program = f"""
try:
    {statement}
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""
    return machine.run(IMPORT + program, **variables).strip()


def test_page(gtx: Machine) -> None:
    """The programs of docs/coming-from-igpu.md."""
    page = (SOURCE / "docs/coming-from-igpu.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    text = gtx.run("def train(): pass\n" + "".join(blocks))
    assert text.endswith("122.23 W\n") and BOARD.partition("PROCESSES")[0] in text


def test_quick_start(gtx: Machine) -> None:
    program = """
gpu_count = igpu.count_devices()
gpu = igpu.get_device(0)
print(f'This host has {gpu_count} devices.')
print(f'The first gpu is a {gpu.name} with {gpu.memory.total:.0f}{gpu.memory.unit}.')
"""
    assert gtx.run(IMPORT + program) == (
        "This host has 4 devices.\n"
        "The first gpu is a GeForce GTX 1080 Ti with 11178MiB.\n"
    )


def test_driver_version(gtx: Machine) -> None:
    assert gtx.run(IMPORT + "print(igpu.nvidia_driver_version())") == "(430, 34)\n"


@pytest.mark.parametrize(
    "version, numbers", [("535.104.05", [535, 104]), ("440", [440, None])]
)
def test_other_driver_versions(machine: Machine, version: str, numbers: list) -> None:
    machine.add_gpus({"driver_version": version, "gpus": [{}]})
    assert tell(machine, "igpu.nvidia_driver_version()") == numbers


def test_utilization_of_all(gtx: Machine) -> None:
    program = """
for gpu_info in igpu.devices():
    print(f'GPU board {gpu_info.index}: {gpu_info.name}')
    print(f'Utilization: GPU {gpu_info.utilization.gpu}% | Memory {gpu_info.utilization.memory}%')
    print(f'Temperature: {gpu_info.utilization.temperature}C (Fan - {gpu_info.utilization.fan}%)')
    print()
"""
    text = gtx.run(IMPORT + program)
    assert text.startswith(
        "GPU board 0: GeForce GTX 1080 Ti\n"
        "Utilization: GPU 44.0% | Memory 35.0%\n"
        "Temperature: 61.0C (Fan - 36.0%)\n\n"
        "GPU board 1: GeForce GTX 1080 Ti\n"
        "Utilization: GPU 65.0% | Memory 58.0%\n"
        "Temperature: 62.0C (Fan - 36.0%)\n\n"
    )


def test_memory_and_power(gtx: Machine) -> None:
    program = """
gpu_info = igpu.get_device(1)
print(gpu_info.memory)
print(gpu_info.power)
"""
    assert gtx.run(IMPORT + program) == (
        "GPU MEMORY:\n"
        "    Total :   11178.50 MiB (100.00%)\n"
        "    Used  :    6525.00 MiB ( 58.37%)\n"
        "    Free  :    4653.50 MiB ( 41.63%)\n"
        "POWER INFO:\n"
        "    Management : Supported\n"
        "    Draw       : 55.75 W\n"
        "    Limit      : 250.00 W\n"
        "    Min Limit  : 125.00 W\n"
        "    Max Limit  : 300.00 W\n"
    )


def test_processes(gtx: Machine) -> None:
    program = """
gpu_info = igpu.get_device(0)
print(f'The device has {gpu_info.memory.used} allocated out of a total of {gpu_info.memory.total}')
print(f'The {len(gpu_info.processes)} processe(s) running on device are:')
for proc in gpu_info.processes:
    print(f'{proc.pid}: using {proc.gpu_memory}')
"""
    assert gtx.run(IMPORT + program) == (
        "The device has 10799.0 allocated out of a total of 11178.5\n"
        "The 2 processe(s) running on device are:\n"
        "4276: using 4284\n"
        "5764: using 6515\n"
    )


def test_a_process_of_ours(machine: Machine) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = {"pid": child.pid, "memory": 2**30}
    machine.add_gpus({"gpus": [{"processes": [process, {"pid": 1, "type": "G"}]}]})
    told = tell(
        machine,
        "[[p.pid, p.name, p.user, p.parent_pid, p.create_time, p.gpu_memory]"
        " for p in igpu.get_device(0).processes]",
    )
    child.communicate("")
    assert told[0][0] == child.pid and told[0][1].startswith("python"), told
    assert told[0][2:4] == [pwd.getpwuid(os.getuid()).pw_name, os.getpid()]
    assert len(told[0][4]) == len("2020-04-17 03:41:27") and told[0][5] == 1024
    assert len(told) == 1, "one that draws is not among them"


def test_devices(gtx: Machine) -> None:
    assert tell(gtx, "[igpu.count_devices(), igpu.devices_index()]") == [
        4,
        [0, 1, 2, 3],
    ]
    name = "GeForce GTX 1080 Ti"
    told = tell(gtx, "[[g.index, g.name] for g in igpu.devices()]")
    assert told == [[i, name] for i in range(4)]
    assert tell(gtx, "[igpu.get_device(2).index]") == [2]


@pytest.mark.parametrize(
    "mask, visible",
    [
        ("1,3", [1, 3]),
        ("3, 1", [3, 1]),
        (None, [0, 1, 2, 3]),
        ("", []),
        ("0,2,-1,1", [0, 2]),
        ("7", []),
        ("NoDevFiles", []),
        ("GPU-115d", [0]),
    ],
)
def test_visible_devices(gtx: Machine, mask: str, visible: list) -> None:
    variables = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    told = tell(
        gtx,
        "[igpu.count_visible_devices(), igpu.visible_devices_index(),"
        " [g.index for g in igpu.visible_devices()]]",
        **variables,
    )
    assert told == [len(visible), visible, visible]


def test_mask_set_in_python(gtx: Machine) -> None:
    program = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '2'\n"
    told = gtx.run(program + IMPORT + "print(igpu.visible_devices_index())")
    assert told == "[2]\n"


def test_attributes(gtx: Machine) -> None:
    groups = {
        "memory": {"total": 11178.5, "used": 10799.0, "free": 379.5, "unit": "MiB"},
        "utilization": {
            "gpu": 44.0,
            "memory": 35.0,
            "fan": 36.0,
            "temperature": 61.0,
            "performance": "P2",
        },
        "pci": {
            "bus": "88",
            "bus_id": "0000:88:00.0",
            "device": "00",
            "device_id": "1B0610DE",
            "sub_system_id": "1210196E",
            "current_link_gen": "3",
            "max_link_gen": "3",
            "current_link_width": "16x",
            "max_link_width": "16x",
        },
        "clocks": {
            "graphics": 1911.0,
            "sm": 1911.0,
            "memory": 5005.0,
            "max_graphics": 1911.0,
            "max_sm": 1911.0,
            "max_memory": 5505.0,
            "unit": "MHz",
        },
        "power": {
            "management": "Supported",
            "draw": 122.23,
            "limit": 250.0,
            "min_limit": 125.0,
            "max_limit": 300.0,
            "unit": "W",
        },
    }
    top = {
        "index": 0,
        "name": "GeForce GTX 1080 Ti",
        "serial": "N/A",
        "uuid": "GPU-115dafb8-26db-32ba-d729-f21b29fc001f",
        "bios": "86.02.39.00.01",
    }
    asked = {name: list(group) for name, group in groups.items()}
    program = f"""
import json
gpu_info = igpu.get_device(0)
told = {{name: getattr(gpu_info, name) for name in {list(top)}}}
for group, names in {asked}.items():
    told[group] = {{name: getattr(getattr(gpu_info, group), name) for name in names}}
print(json.dumps(told))
print(gpu_info.why["serial"])
"""
    told, why = gtx.run(IMPORT + program).splitlines()
    expected = top | groups
    assert json.loads(told) == expected
    assert repr(json.loads(told)) == repr(expected), "the types"
    assert why == "Not Supported"


def test_board_to_the_letter(gtx: Machine) -> None:
    program = """
rows = [
    (4276, "python", "antonio", 45436, "bash", "2020-04-17 03:41:27", 4284),
    (5764, "python", "acnazarejr", 5759, "bash", "2020-04-16 17:57:12", 6515),
]
gpu = igpu.get_device(0)
gpu.processes = igpu.GPUProcessesInfo([igpu.GPUProcessInfo(*row) for row in rows])
print(gpu)
"""
    assert gtx.run(IMPORT + program) == BOARD + "\n\n"


def test_nothing_known_to_the_letter(machine: Machine) -> None:
    missing = [
        "Name",
        "Serial",
        "VbiosVersion",
        "MemoryInfo*",
        "UtilizationRates",
        "Temperature*",
        "FanSpeed*",
        "PerformanceState",
        "PowerState",
        "ClockInfo",
        "MaxClockInfo",
        "Power*",
        "Enforced*",
        "Total*",
        "*Pcie*",
        "*RunningProcesses*",
    ]
    faults = [{"call": f"nvmlDeviceGet{call}", "error": "UNKNOWN"} for call in missing]
    machine.add_gpus({"gpus": [{}], "faults": faults})
    text = machine.run(IMPORT + "print(igpu.get_device(0))")
    assert text.endswith("\n\n")
    for line in (
        "BOARD NAME   : N/A\n",
        "    Total :        nan MiB (100.00%)\n",
        "    Used  :        nan MiB (   nan%)\n",
        "    Temperature : nanC\n",
        "    Graphics    : N/A\n",
        "    Link Width    : N/A (Max: N/A)\n",
        "    SM       : nan MHz (Max: nan)\n",
        "    Draw       : nan W\n",
        "\n\nNone\n\n",
    ):
        assert line in text, text
    assert tell(machine, "igpu.get_device(0).processes") is None


def test_no_processes(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{}]})
    assert tell(machine, "igpu.get_device(0).processes") == []
    assert machine.run(IMPORT + "print(igpu.get_device(0))").endswith(" W\n\nNone\n\n")


def test_memory_unknown_is_not_zero(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{"processes": [{"pid": 4190001, "memory": None}]}]})
    program = "p, = igpu.get_device(0).processes\nprint(p.gpu_memory, p.user, p)"
    told = machine.run(IMPORT + program)
    assert told.startswith("nan N/A 4190001 | "), told
    assert told.endswith(" | nan      | N/A                  | nan   \n"), told


def test_update(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{}, {"power": [[0, 100], [0.5, 100], [0.51, 300]]}]})
    program = """
import time
gpu = igpu.get_device(1)
before = gpu.power.draw
time.sleep(1)
kept = gpu.power.draw
print(gpu.update(), before, kept, gpu.power.draw)
"""
    assert machine.run(IMPORT + program) == "None 100.0 100.0 300.0\n"


def test_wrong_index(gtx: Machine) -> None:
    for index in ("4", "-1", "'0'", "None"):
        said = failure(gtx, f"igpu.get_device({index})")
        shown = index.strip("'")
        assert said == f"ValueError: Invalid device index: {shown}. Valid: [0, 1, 2, 3]"


def test_no_driver(machine: Machine) -> None:
    told = tell(
        machine,
        "[igpu.count_devices(), igpu.devices_index(), igpu.devices(),"
        " igpu.visible_devices_index(), igpu.nvidia_driver_version()]",
    )
    assert told == [0, [], [], [], [None, None]]
    said = failure(machine, "igpu.get_device(0)")
    assert said.startswith(
        "ValueError: There are no devices available: no NVIDIA"
    ), said


def test_lost(machine: Machine) -> None:
    machine.add_gpus({"gpus": [{}, {"lost_at": 0.5}]})
    program = """
import time
gpu = igpu.get_device(1)
time.sleep(0.6)
gpu.update()
print(gpu.index, gpu.power.draw, gpu.why["power.draw"], len(igpu.devices()))
"""
    assert machine.run(IMPORT + program) == "1 nan GPU is lost 2\n"


def test_threads_and_forks(gtx: Machine) -> None:
    program = """
import os
from concurrent.futures import ThreadPoolExecutor
gpu = igpu.get_device(0)
with ThreadPoolExecutor(8) as pool:
    draws = list(pool.map(lambda i: igpu.get_device(i % 4).index, range(40)))
assert draws == [i % 4 for i in range(40)]
if os.fork() == 0:
    gpu.update()
    assert gpu.power.draw == 122.23 and igpu.count_devices() == 4
    os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
gpu.update()
"""
    gtx.run(IMPORT + program)
