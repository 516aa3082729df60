#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A meter in programs of others: built against the headers and the library alone."""

import os
import signal
import subprocess
import time
from pathlib import Path

import tap
from tap import case, near

# begin, a line from stdin, inner, a line, end of both; or rows until it is killed.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wattmeter/wattmeter.h>

static int fail(const struct wm_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

static void wait_for_line(void)
{
    char line[16];

    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        exit(3);
}

static void show(const char *name, const struct wm_meter_energy *energy)
{
    if (energy->state == WM_READING_OK)
        printf("%s %.6f J, %s\n", name, energy->joules,
               wm_meter_method_name(energy->method));
    else
        printf("%s n/a: %s\n", name, energy->why);
}

int main(int argc, char **argv)
{
    struct wm_meter_options options = {};
    struct wm_meter *meter;
    struct wm_meter_reading outer_cost, inner_cost;
    struct wm_error err;
    uint64_t outer, inner;

    if (argc != 3)
        return 2;
    options.mode = WM_RECORD_APPEND;
    if (strcmp(argv[1], "snippets") == 0)
        options.snippets = argv[2];
    if (wm_meter_open(&options, &meter, &err) < 0)
        return fail(&err);
    if (strcmp(argv[1], "rows") == 0) {
        if (wm_meter_run(meter, argv[2], 10000000, &err) < 0)
            return fail(&err);
        wait_for_line();
        if (wm_meter_halt(meter, &err) < 0)
            return fail(&err);
    } else {
        if (wm_meter_start(meter, "outer", &outer, &err) < 0)
            return fail(&err);
        wait_for_line();
        if (wm_meter_start(meter, "inner", &inner, &err) < 0)
            return fail(&err);
        wait_for_line();
        if (wm_meter_stop(meter, inner, &inner_cost, NULL, &err) < 0 ||
            wm_meter_stop(meter, outer, &outer_cost, NULL, &err) < 0)
            return fail(&err);
        show("inner", &inner_cost.cpu);
        show("outer", &outer_cost.cpu);
        show("gpu", &outer_cost.gpu);
    }
    if (wm_meter_close(meter, &err) != 0)
        return fail(&err);
    return 0;
}
"""


def build(folder, compiler="cc", suffix="c"):
    source, program = folder / f"program.{suffix}", folder / f"program-{suffix}"
    source.write_text(PROGRAM)
    sanitizers = ["-fsanitize=address,undefined"] if tap.SANITIZED else []
    try:
        subprocess.run(
            [compiler, "-Wall", "-Wextra", "-Werror", "-o", program, source,
             f"-I{tap.SOURCE / 'include'}", f"-L{tap.BUILD}", "-lwattmeter",
             f"-Wl,-rpath,{tap.BUILD}", *sanitizers], check=True, capture_output=True, text=True)
    except FileNotFoundError as missing:
        raise tap.Skip(f"no {compiler}") from missing
    except subprocess.CalledProcessError as failed:
        raise AssertionError(failed.stderr) from failed
    return program


def make_package(folder):
    zone = folder / "sys" / "class" / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (zone / "energy_uj").write_text("0001000000\n")

    def move_to(joules):
        with open(zone / "energy_uj", "r+", encoding="ascii") as counter:
            counter.write(f"{int(joules * 1e6):010d}\n")
    return move_to


def start(folder, program, *arguments):
    env = tap.environment(WATTMETER_SYSFS=str(folder / "sys"), WATTMETER_NVML="/nonexistent")
    return subprocess.Popen([program, *map(str, arguments)], env=env, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def next_step(process):
    process.stdin.write("on\n")
    process.stdin.flush()


def measure_twice(folder, program):
    move_to = make_package(folder)
    process = start(folder, program, "snippets", folder / "snippets.csv")
    assert process.stdout.readline() == "ready\n", process.communicate()
    time.sleep(0.05)
    move_to(3)
    next_step(process)
    assert process.stdout.readline() == "ready\n", process.communicate()
    time.sleep(0.05)
    move_to(7)
    next_step(process)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    inner, outer, gpu = out.splitlines()
    near(float(inner.split()[1]), 4, 0.1, "inner")
    near(float(outer.split()[1]), 6, 0.1, "outer")
    assert inner.endswith(" J, counter"), inner
    assert gpu.startswith("gpu n/a: nvml: "), gpu
    return (folder / "snippets.csv").read_text().splitlines()


@case("a program in C measures two snippets, one inside the other")
def _(folder):
    rows = measure_twice(folder, build(folder))
    assert rows[0].startswith("elapsed_s,cpu_energy_J,"), rows
    names = [row.split(",")[14] for row in rows]
    assert names == ["name", "inner", "outer"], names
    near(float(rows[2].split(",")[1]), 6, 0.1, "in the file")


@case("so does one in C++")
def _(folder):
    assert len(measure_twice(folder, build(folder, "c++", "cpp"))) == 3


@case("rows are in the file as they come: a kill loses the last one at most, and the next run goes on")
def _(folder):
    program, rows = build(folder), folder / "rows.csv"
    make_package(folder)
    process = start(folder, program, "rows", rows)
    assert process.stdout.readline() == "ready\n", process.communicate()
    time.sleep(0.6)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    text = rows.read_text()
    lines = text.splitlines()
    cells = len(lines[0].split(","))
    assert text.endswith("\n") and len(lines) >= 20, lines
    assert all(len(line.split(",")) == cells for line in lines)
    times = [float(line.split(",")[0]) for line in lines[1:]]
    assert times == sorted(times) and times[-1] > 0.5, times

    process = start(folder, program, "rows", rows)
    assert process.stdout.readline() == "ready\n", process.communicate()
    next_step(process)
    assert process.communicate(timeout=300) and process.returncode == 0
    after = rows.read_text()
    assert after.startswith(text) and len(after) > len(text)
    assert after.count("elapsed_s") == 1


@case("the meter's threads take no signals, and a signal ends the program as ever")
def _(folder):
    make_package(folder)
    process = start(folder, build(folder), "rows", folder / "rows.csv")
    assert process.stdout.readline() == "ready\n", process.communicate()
    threads = [int(entry) for entry in os.listdir(f"/proc/{process.pid}/task")]
    assert len(threads) >= 3, threads
    for thread in threads:
        status = Path(f"/proc/{process.pid}/task/{thread}/status").read_text()
        blocked = int(next(line for line in status.splitlines()
                           if line.startswith("SigBlk")).split()[1], 16)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1):
            is_blocked = bool(blocked >> (number - 1) & 1)
            assert is_blocked == (thread != process.pid), (thread, status)
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGTERM, process.returncode


tap.main()
