#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges as regions, of a program that NVIDIA's own client (package nvtx) marks."""

import subprocess
import sys

import tap
from tap import WATTMETER, case

try:
    import nvtx
except ImportError:
    print("nvtx is not installed (python3 -m pip install nvtx)")
    sys.exit(77)

if b"__asan_init" in (tap.BUILD / "libwattmeter-nvtx.so").read_bytes():
    print("the library is built with a sanitizer, which Python cannot load")
    sys.exit(77)

PROGRAM = """
import nvtx, os, threading, time

lasted = []

@nvtx.annotate("decorated", color="blue")
def decorated():
    begin = time.monotonic()
    time.sleep(0.002)
    lasted.append(time.monotonic() - begin)

for _ in range(5):
    with nvtx.annotate("epoch"):
        for _ in range(3):
            with nvtx.annotate("batch", category="training"):
                decorated()

with nvtx.annotate("all-reduce", domain="comm"):
    with nvtx.annotate("inside"):
        time.sleep(0.01)

first = nvtx.start_range("request 1")
second = nvtx.start_range("request 2", domain="server")
nvtx.end_range(first)
nvtx.end_range(second)

# Domains have stacks of their own, which may interleave.
nvtx.push_range("outer", domain="a")
nvtx.push_range("inner", domain="b")
nvtx.pop_range(domain="a")
nvtx.pop_range(domain="b")
nvtx.pop_range(domain="a")

def work():
    for _ in range(100):
        with nvtx.annotate("threaded"):
            pass
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]

if os.fork() == 0:
    with nvtx.annotate("child"):
        pass
    os._exit(0)
os.wait()
nvtx.push_range("unfinished")
with open(os.environ.get("WM_TEST_LASTED", os.devnull), "w") as out:
    print(min(lasted), sum(lasted), file=out)
"""


def regions(program, *options, **variables):
    report = tap.report(sys.executable, "-c", program, options=["--nvtx", *options],
                        env=tap.environment(PYTHONPATH=":".join(sys.path), **variables))
    assert report["exit"]["status"] == 0, report["exit"]
    return report["regions"]


@case("pushed, started and decorated ranges, with domains, categories and threads")
def _(folder):
    told = regions(PROGRAM, WM_TEST_LASTED=str(folder / "lasted"))
    shortest, together = map(float, (folder / "lasted").read_text().split())
    names = {entry["name"]: entry for entry in told["by_name"]}
    calls = {name: entry["calls"] for name, entry in names.items()}
    expected = {"epoch": 5, "batch [training]": 15, "decorated": 15, "comm: all-reduce": 1,
                "inside": 1, "request 1": 1, "server: request 2": 1, "a: outer": 1,
                "b: inner": 1, "threaded": 400, "child": 1, "unfinished": 0}
    assert calls == expected, calls
    assert names["unfinished"]["unfinished"] == 1
    assert told["stray"] == 0 and told["lost"] == 0 and told["dropped"] == 0, told
    assert names["decorated"]["time"]["min"] >= shortest, (names["decorated"], shortest)
    assert names["epoch"]["time"]["total"] >= together


@case("the call tree is that of the program")
def _(folder):
    told = regions(PROGRAM)
    paths = told["by_path"]
    tree = set()
    for entry in paths:
        chain, at = [], entry
        while at:
            chain.insert(0, at["name"])
            at = paths[at["parent"]] if at["parent"] is not None else None
        tree.add(" > ".join(chain))
    assert "epoch > batch [training] > decorated" in tree, tree
    assert "comm: all-reduce > inside" in tree, tree
    assert "threaded" in tree and "request 1" in tree, tree


NUMBERED = """
import nvtx
for name in ("aten::mm, seq = 4, op_id = 7, sizes = [[2, 2]]", "aten::mm, op_id = 8",
             ", op_id = 9", "it, seq = 1", "my, seq = 2, block, op_id = 10, seq = 3"):
    nvtx.push_range(name)
    nvtx.pop_range()
"""


@case("what PyTorch's emit_nvtx numbers is called by the operator")
def _(folder):
    calls = {entry["name"]: entry["calls"] for entry in regions(NUMBERED)["by_name"]}
    assert calls == {"aten::mm": 2, "": 1, "it, seq = 1": 1, "my": 1}, calls


@case("without a measurement the ranges do nothing")
def _(folder):
    path = str(tap.BUILD / "libwattmeter-nvtx.so")
    done = subprocess.run([sys.executable, "-c", PROGRAM], timeout=300,
                          env=tap.environment(PYTHONPATH=":".join(sys.path),
                                              NVTX_INJECTION64_PATH=path),
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done


@case("another tool's injection is not pushed aside")
def _(folder):
    done = subprocess.run([WATTMETER, "run", "--nvtx", "--", "true"], timeout=300,
                          env=tap.environment(NVTX_INJECTION64_PATH="/opt/nsys/lib.so"),
                          capture_output=True, text=True)
    assert done.returncode == 2 and "/opt/nsys/lib.so" in done.stderr, done


@case("a run inside a run, both with --nvtx")
def _(folder):
    run = [WATTMETER, "run", "-q", "--nvtx", "--"]
    done = subprocess.run([*run, *run, "sh", "-c", "echo $NVTX_INJECTION64_PATH"], timeout=300,
                          env=tap.environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "libwattmeter-nvtx.so" in done.stdout, done


# A program's side of the injection, which has a table of pointers to functions.
NAMES_CATEGORIES = """
import ctypes, resource, sys

class Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("module_functions", ctypes.c_void_p)]

slots = [(ctypes.c_void_p * 16)() for _ in range(2)]
tables = [(ctypes.c_void_p * 16)(*[ctypes.addressof(slot) + 8 * i for i in range(16)])
          for slot in slots]

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p),
                  ctypes.POINTER(ctypes.c_uint))
def module_functions(module, table, count):
    table[0] = ctypes.addressof(tables[module == 5])
    count[0] = 16
    return 1

callbacks = Callbacks(ctypes.sizeof(Callbacks),
                      ctypes.cast(module_functions, ctypes.c_void_p).value)
get_table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint)(
    lambda table: ctypes.addressof(callbacks))
assert ctypes.CDLL(sys.argv[1]).InitializeInjectionNvtx2(get_table) == 1
name_category = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_char_p)(slots[0][12])

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(100000):
    name_category(7, b"x" * 200)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@case("a category that is named again and again takes no more memory")
def _(folder):
    done = subprocess.run([sys.executable, "-c", NAMES_CATEGORIES,
                           str(tap.BUILD / "libwattmeter-nvtx.so")], timeout=300,
                          env=tap.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done
    assert int(done.stdout) < 4096, done.stdout  # KiB


tap.main()
