#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures and films of recordings, taken apart again."""

import itertools
import math
import os
import pty
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import xml.etree.ElementTree
import zlib
from pathlib import Path

import tap
from tap import case
from terminal import wait_for

RECORDINGS = tap.SOURCE / "tests/data/recordings"
TREE = RECORDINGS / "v1-tree.sqlite"
MODULE = "wattmeter-plot.so"

if not (tap.BUILD / MODULE).exists():
    print("built without cairo and pango")
    sys.exit(77)


def plain_environment(**variables):
    # fontconfig keeps what it has read to the end, which is none of our leaks.
    return tap.environment(ASAN_OPTIONS="detect_leaks=0:allow_user_segv_handler=0", **variables)


def plot(*arguments, command=tap.WATTMETER, **variables):
    return subprocess.run([command, "plot", *map(str, arguments)],
                          env=plain_environment(**variables),
                          capture_output=True, text=True, timeout=300, check=False)


def drawn(*arguments):
    done = plot(*arguments)
    assert done.returncode == 0 and done.stderr == "", done
    return done


def refused(*arguments, status, **options):
    """The one line that it says."""
    done = plot(*arguments, **options)
    assert done.returncode == status and done.stdout == "", done
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("wattmeter plot: "), done.stderr
    return lines[0]


def change(folder, name, statements, source=RECORDINGS / "v1.sqlite"):
    """A copy of a recording in which something is different."""
    path = folder / name
    shutil.copy(source, path)
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path


def record(folder, samples, power, late_ns=0):
    """A recording of gpu0's power alone, ten samples a second; the driver answers later."""
    path = change(folder, "made.sqlite", ["DELETE FROM sample", "DELETE FROM gap"])
    database = sqlite3.connect(path)
    start = database.execute("SELECT anchor_monotonic_ns FROM run").fetchone()[0]
    rows = [(0, start + 100_000_000 * i, start + 100_000_000 * i + late_ns, power(i))
            for i in range(samples)]
    database.executemany("INSERT INTO sample (run, time_ns, gpu0_time_ns, \"gpu0_power_W\") "
                         "VALUES ((SELECT min(id) + ? FROM run), ?, ?, ?)", rows)
    database.commit()
    database.close()
    return path


def pixels(path):
    """The rows of a PNG with three bytes a pixel."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind == 2
    packed, at = b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    raw, rows, before = zlib.decompress(packed), [], bytes(3 * width)
    for y in range(height):
        kind, *row = raw[y * (3 * width + 1):(y + 1) * (3 * width + 1)]
        for x in range(3 * width):
            left = row[x - 3] if x >= 3 else 0
            up, corner = before[x], before[x - 3] if x >= 3 else 0
            near = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
            row[x] = row[x] + (0, left, up, (left + up) // 2, near)[kind] & 255
        rows.append(row)
        before = row
    return [[tuple(row[3 * x:3 * x + 3]) for x in range(width)] for row in rows]


def texts(svg):
    """What is written in a figure."""
    return ["".join(element.itertext()) for element in xml.etree.ElementTree.fromstring(svg).iter()
            if element.tag.endswith("}text")]


def is_blue(pixel):
    """Of the line of the first device, 0x0072b2, thinned by what is beside it."""
    return pixel[2] - pixel[0] > 60


@case("SVG, PNG and PDF, on standard output too")
def _(folder):
    drawn(TREE, "-o", folder / "a.svg")
    root = xml.etree.ElementTree.parse(folder / "a.svg").getroot()
    assert root.get("width") == "960px" and root.get("viewBox") == "0 0 960 720", root.attrib
    assert (folder / "a.svg").stat().st_size < 300_000

    drawn(TREE, "-o", folder / "a.png", "--dpi", "48", "--size", "800x400")
    assert struct.unpack(">II", (folder / "a.png").read_bytes()[16:24]) == (400, 200)
    drawn(TREE, "-o", folder / "a.pdf")
    assert (folder / "a.pdf").read_bytes().startswith(b"%PDF")
    assert drawn(TREE, "-o", "-", "--format", "svg").stdout.startswith("<?xml")


@case("one sample of 5000 is seen at its place")
def _(folder):
    spike = 3000
    path = record(folder, 5000, lambda i: 400 if i == spike else 50)
    drawn(path, "--channels", "gpu0_power_W", "--title", "Spike", "-o", folder / "a.png")
    rows = pixels(folder / "a.png")
    left, right = 76, 942  # of the panel
    place = left + (right - left) * spike / 4999
    upper = {x for row in rows[100:300] for x in range(left, right) if is_blue(row[x])}
    assert upper and all(abs(x - place) <= 2 for x in upper), (upper, place)


@case("what is missing breaks the line")
def _(folder):
    path = record(folder, 100, lambda i: None if 40 <= i < 60 else 100)
    drawn(path, "--channels", "gpu0_power_W", "--title", "Gap", "-o", folder / "a.png")
    rows = pixels(folder / "a.png")
    seen = {x for row in rows[60:650] for x in range(80, 930) if is_blue(row[x])}
    middle = 76 + 866 * 4.9 / 9.9
    assert 200 in seen and 800 in seen and round(middle) not in seen, sorted(seen)


@case("a figure ends at its last sample, or at --from and --to")
def _(folder):
    path = record(folder, 100, lambda i: 100)
    for first, last, arguments in [(0, 9.9, []), (2, 6, ["--from", "2", "--to", "6"]),
                                   (0, 19.8, ["--to", "19.8"])]:
        drawn(path, "--channels", "gpu0_power_W", *arguments, "--overwrite", "-o", folder / "a.png")
        seen = columns_of(b"".join(bytes(part for pixel in row for part in pixel)
                                   for row in pixels(folder / "a.png")), range(80, 660))
        place = lambda when: 76 + 866 * (when - first) / (last - first)
        assert abs(min(seen) - 78) <= 2 and abs(max(seen) - min(place(9.9), 939)) <= 2, seen


@case("one sample is drawn")
def _(folder):
    drawn(record(folder, 1, lambda i: 50), "--channels", "gpu0_power_W", "-o", folder / "a.png")
    assert any(is_blue(pixel) for row in pixels(folder / "a.png")[100:] for pixel in row)


@case("layouts, two axes, times, several recordings and the other kinds")
def _(folder):
    for number, arguments in enumerate([
            [TREE, "--layout", "power+temperature,utilization/memory,temperature,gpu0"],
            [TREE, "--channels", "gpu1,tree_threads", "--channels", "temperature"],
            [TREE, "--from", "0.3", "--to", "0.8", "--no-regions"],
            [f"a={TREE}", f"b={RECORDINGS / 'v2-tree.csv'}", "--channels", "gpu0"],
            [TREE, f"after={RECORDINGS / 'v2-tree.csv'}", "--kind", "energy"],
            [RECORDINGS / "v1-regions.sqlite", "--kind", "regions", "--by", "time"],
            [RECORDINGS / "v1-eight-runs.sqlite", "--kind", "repeats"],
            [f"a={RECORDINGS / 'v1-eight-runs.sqlite'}", f"b={TREE}", "--kind", "repeats"],
            [RECORDINGS / "v1-three-runs.sqlite", "--run", "0"],
            [RECORDINGS / "v1-killed-in-region.sqlite"],
            [RECORDINGS / "v1-load.aipm"]]):
        target = folder / f"{number}.svg"
        drawn(*arguments, "-o", target)
        xml.etree.ElementTree.parse(target)


@case("the arrow from run to run of the energy figure ends in a head with two equal sides")
def _(folder):
    svg = drawn(TREE, f"after={RECORDINGS / 'v2-tree.csv'}", "--kind", "energy", "-o", "-",
                "--format", "svg").stdout
    number = r"(-?[\d.]+)"
    heads = re.findall(rf'd="M {number} {number} L {number} {number} L {number} {number} Z', svg)
    assert len(heads) == 1, heads
    x, y, left_x, left_y, right_x, right_y = map(float, heads[0])
    sides = math.hypot(left_x - x, left_y - y), math.hypot(right_x - x, right_y - y)
    assert abs(sides[0] - sides[1]) < 0.01 * sides[0], heads


def many_gpus(folder, count):
    """A recording of simulated GPUs, of which the last is at a third of the power."""
    scenario = folder / "gpus.json"
    scenario.write_text(f'{{"gpus": [{{"count": {count - 1}, "power": 300, "utilization": 0.9}}, '
                        '{"power": 100, "utilization": 0.9}]}')
    path = folder / f"gpus{count}.sqlite"
    subprocess.run([tap.WATTMETER, "run", "-q", "--record", path, "--", "sleep", "0.3"],
                   check=True, timeout=300, env=plain_environment(
                       FAKE_NVML_SCENARIO=str(scenario),
                       WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")))
    return path


@case("more than eight devices of a kind are folded, and one far away from the others is named")
def _(folder):
    names = [f"gpu{number} (simulated)" for number in range(9)]
    few = texts(drawn(many_gpus(folder, 8), "-o", "-", "--format", "svg").stdout)
    assert set(names[:8]) <= set(few) and not any("mean" in text for text in few), few
    path = many_gpus(folder, 9)
    many = texts(drawn(path, "-o", "-", "--format", "svg").stdout)
    assert "gpu0–gpu8 (simulated): mean, range" in many, many
    assert not set(names) & set(many) and many.count("gpu8") == 1, many
    one = change(folder, "one.sqlite", ["DELETE FROM sample WHERE time_ns > "
                                        "(SELECT min(time_ns) FROM sample)"], path)
    drawn(one, "--channels", "memory", "-o", folder / "one.png")
    rows = pixels(folder / "one.png")
    assert any(is_blue(pixel) for row in rows[80:] for pixel in row), "no mean of one sample"


@case("the mean of devices that are sampled one after the other has no steps at its ends")
def _(folder):
    path = change(folder, "apart.sqlite", [
        f'UPDATE sample SET "gpu{number}_power_W" = {100 + 10 * number}, '
        f"gpu{number}_time_ns_2 = time_ns + {9_000_000 * number}" for number in range(9)],
        many_gpus(folder, 9))
    names = ",".join(f"gpu{number}_power" for number in range(9))
    for inputs in 1, 2:
        svg = drawn(*[path] * inputs, "-o", "-", "--format", "svg", "--channels", names,
                    "--no-legend").stdout
        bands = re.findall(r'fill-opacity[:=]"?0\.22[^>]* d="([^"]*)"', svg)
        assert len(bands) == inputs, svg
        for band in bands:
            heights = {y for _, y in re.findall(r"([\d.]+) ([\d.]+)", band)}
            assert len(heights) == 2, band


def axes_of(svg):
    """The numbers at the left of each panel, from top to bottom, and the names of axes."""
    elements = [element for element in xml.etree.ElementTree.fromstring(svg).iter()
                if element.tag.endswith("}text")]
    marks = [(float(element.get("y")), element.text) for element in elements
             if element.get("font-size") == "11" and element.get("text-anchor") == "end"]
    names = [element for element in elements if "rotate" in element.get("transform", "")]
    return sorted(marks), names


@case("every axis has two marks at every size, names that are read, and amounts begin at 0")
def _(folder):
    level = record(folder, 100, lambda i: 7)
    for path, metric, low in [(level, "gpu0_power_W", 0), (TREE, "memory", 0),
                              (TREE, "cpu_use", 0), (TREE, "temperature", None)]:
        for size in "column", "page", "960x720", "400x150":
            svg = drawn(path, "-o", "-", "--format", "svg", "--size", size, "--channels",
                        metric, "--no-legend").stdout
            marks, names = axes_of(svg)
            numbers = [float(text) for _, text in marks]
            assert len(numbers) > 1 and (low is None or numbers[-1] == low), (size, numbers)
    fitted, _ = axes_of(drawn(level, "-o", "-", "--format", "svg", "--fit", "--channels",
                              "gpu0_power_W").stdout)
    assert fitted and all(float(text) > 6 for _, text in fitted), fitted
    # Five panels in a column: higher, and no name is cut or tiny.
    svg = drawn(TREE, "-o", "-", "--format", "svg", "--size", "column").stdout
    marks, names = axes_of(svg)
    assert {name.text for name in names} == {
        "Power", "(W)", "GPU use", "(%)", "CPU use", "(% of one core)", "Memory", "(GB)",
        "Temperature", "(°C)"}, names
    assert all(float(name.get("font-size")) >= 9 for name in names), names
    assert len(marks) >= 8, marks


@case("calls of one region that follow each other have borders, unless they are too short")
def _(folder):
    for count, bands in (4, 4), (5000, 1):
        path = change(folder, f"calls{count}.sqlite", ["DELETE FROM region_call"], TREE)
        database = sqlite3.connect(path)
        run, first, last = database.execute("SELECT min(run), min(time_ns), max(time_ns) "
                                            "FROM sample").fetchone()
        ends = [first + (last - first) * number // count for number in range(count + 1)]
        database.executemany("INSERT INTO region_call (run, path, thread, start_ns, stop_ns, is_open)"
                             " VALUES (?, 0, 0, ?, ?, 0)",
                             [(run, *call) for call in zip(ends, ends[1:])])
        database.commit()
        database.close()
        svg = drawn(path, "-o", "-", "--format", "svg", "--channels", "power",
                    "--no-legend").stdout
        borders = re.findall(r'stroke-width[:=]"?0\.7\b[^>]* d="([^"]*)"', svg)
        assert len(borders) == bands, (count, borders)


@case("a line on another has dashes, so that both are seen")
def _(folder):
    same = change(folder, "same.sqlite",
                  ['UPDATE sample SET "gpu1_power_W" = "gpu0_power_W"'], TREE)
    for path, dashed in (TREE, [False, False]), (same, [False, True]):
        svg = drawn(path, "-o", "-", "--format", "svg", "--channels",
                    "gpu0_power,gpu1_power").stdout
        lines = [line for line in svg.splitlines() if "bevel" in line]
        assert ["dasharray" in line for line in lines] == dashed, lines


def region_colours(svg):
    """The colour of each region of a legend."""
    root = xml.etree.ElementTree.fromstring(svg)
    found = {}
    for element in root.iter():
        fill = re.search(r"fill[:=]\"?(rgb\([^)]*\))[^>]*fill-opacity[:=]\"?0\.12",
                         " ".join(f"{name}:{value}" for name, value in element.attrib.items()))
        box = re.match(r"M ([\d.]+) ([\d.]+) L ([\d.]+) ", element.get("d", ""))
        if fill and box and float(box[3]) - float(box[1]) == 20:
            found[float(box[1]) + 26, float(box[2]) + 5] = fill[1]
    names = {}
    for element in root.iter():
        if element.tag.endswith("}text") and element.get("x"):
            x, y = float(element.get("x")), float(element.get("y"))
            names.update({element.text: colour for (left, middle), colour in found.items()
                          if left == x and abs(middle - y) < 8})
    return names


def with_regions(folder, names):
    """A recording with these regions, one after the other."""
    path = change(folder, "regions.sqlite", ["DELETE FROM region_call", "DELETE FROM region_path"],
                  TREE)
    database = sqlite3.connect(path)
    run, first, last = database.execute("SELECT min(run), min(time_ns), max(time_ns) "
                                        "FROM sample").fetchone()
    ends = [first + (last - first) * number // len(names) for number in range(len(names) + 1)]
    for number, name in enumerate(names):
        database.execute("INSERT INTO region_path VALUES (?, ?, NULL, ?, 0, 0)",
                         (run, number, name))
        database.execute("INSERT INTO region_call (run, path, thread, start_ns, stop_ns, is_open)"
                         " VALUES (?, ?, 0, ?, ?, 0)", (run, number, *ends[number:number + 2]))
    database.commit()
    database.close()
    return path


@case("a region has one colour in all parts of a recording, and its name in the legend")
def _(folder):
    path = with_regions(folder, [f"part{number}" for number in range(8)])
    times = sqlite3.connect(path).execute("SELECT min(time_ns), max(time_ns) FROM sample")
    first, last = times.fetchone()
    draw = lambda *words: drawn(path, "-o", "-", "--format", "svg", "--channels", "power",
                                *words).stdout
    whole = draw()
    colours = region_colours(whole)
    assert set(colours) == {f"part{number}" for number in range(6)}, colours
    assert len(set(colours.values())) == 6 and "+2 more regions" in texts(whole), colours
    late = draw("--from", str((last - first) / 2e9))
    assert set(region_colours(late)) == {"part4", "part5", "part6", "part7"}, texts(late)
    assert all(region_colours(late)[name] == colours[name] for name in ("part4", "part5")), late
    assert not region_colours(draw("--no-regions")) and "part0" not in draw("--no-legend")


def without(metrics, device, when="1"):
    """Statements that take values and leave the reason."""
    columns = [f"{device}_{metric}" for metric in metrics]
    return ([f'UPDATE sample SET "{column}" = NULL WHERE {when}' for column in columns] +
            [f"DELETE FROM gap WHERE channel = '{column}'" for column in columns] +
            ["INSERT INTO gap (run, channel, from_ns, to_ns, state, why) SELECT min(run), "
             f"'{column}', min(time_ns), max(time_ns), 'failed', 'GPU is lost' FROM sample "
             f"WHERE {when}" for column in columns])


@case("what has no value is in the legend with the reason, and an end is marked at its line")
def _(folder):
    power = ["power_W", "energy_J"]
    one = change(folder, "one.sqlite", without(power, "gpu1"), TREE)
    draw = lambda *words: texts(drawn(*words, "-o", "-", "--format", "svg").stdout)
    assert "Power: no value of gpu1 (GPU is lost)" in draw(one), draw(one)
    assert "one, Power: no value of gpu1 (GPU is lost)" in draw(TREE, one, "--channels", "power")
    both = change(folder, "both.sqlite", without(power, "gpu0"), one)
    assert "Power: no value of gpu0 and 1 more" in draw(both), draw(both)
    second = change(folder, "second.sqlite", without(["temperature_celsius"], "gpu1"), TREE)
    assert ("Temperature: no value of gpu1 (GPU is lost)" in
            draw(second, "--layout", "power+temperature")), draw(second)
    # A panel without any line keeps the name of its axis.
    empty = draw(both, "--channels", "gpu0_power,memory", "--no-legend")
    assert "Power (W)" in empty, empty
    # Past the end of one of two recordings.
    assert "short: no value" in draw(f"short={TREE}", record(folder, 100, float),
                                     "--from", "5")
    half = change(folder, "half.sqlite", without(
        power, "gpu1", "time_ns > (SELECT avg(time_ns) FROM sample)"), TREE)
    assert draw(half, "--channels", "power").count("gpu1: GPU is lost") == 1, draw(half)
    assert not any("lost" in text for text in draw(TREE))


@case("several recordings: each has a colour, each device a dash; no entry is left out")
def _(folder):
    path = many_gpus(folder, 9)
    words = [f"name_{number}={TREE}" for number in range(20)] + [f"many={path}"]
    names = [word.split("=")[0] for word in words]
    for size in "960x720", "column":
        found = texts(drawn(*words, "-o", "-", "--format", "svg", "--size", size, "--layout",
                            "power").stdout)
        for name in [*names, "gpu0 (simulated)", "gpu1 (simulated)",
                     "gpu0–gpu8 (simulated): mean, range"]:
            assert found.count(name) == 1, (size, name, found)
        assert not any("..." in text or "…" in text for text in found), found
    # One colour of each of two recordings, and two lines of each, of which one has dashes.
    figure = drawn(f"a={TREE}", f"b={TREE}", "-o", "-", "--format", "svg", "--channels",
                   "gpu0_power,gpu1_power").stdout
    lines = [line for line in figure.splitlines() if "bevel" in line]
    colours = [re.search(r'stroke[:=]"?(rgb\([^)]*\))', line).group(1) for line in lines]
    dashes = ["dasharray" in line for line in lines]
    assert dashes == [False, True, False, True], lines
    assert colours[0] == colours[1] != colours[2] == colours[3], colours


@case("bars of regions have the joules of the report, beside their intervals")
def _(folder):
    counts = []
    for recording in TREE, RECORDINGS / "v1-killed-in-region.sqlite":
        table = subprocess.run([tap.WATTMETER, "report", recording], env=plain_environment(),
                               capture_output=True, text=True, timeout=300, check=True).stdout
        table = table.split("J  region\n")[1].split("region tree")[0]
        joules = {" ".join(name.split(" (")[0].split()): figure for figure, name in
                  re.findall(r" (-|[\d.]+ [mkµ]?J)  (\S.*)", table)}
        svg = drawn(recording, "-o", "-", "--format", "svg", "--kind", "regions").stdout
        whiskers = [tuple(map(float, found)) for found in re.findall(
            r'stroke-width[:=]"?1\.2[^>]* d="M ([\d.]+) ([\d.]+) L ([\d.]+) ', svg)]
        rows = [element for element in xml.etree.ElementTree.fromstring(svg).iter()
                if element.tag.endswith("}text") and element.get("font-size") == "12"]
        assert whiskers and joules, (whiskers, table)
        known = 0
        for name, number in zip(rows, rows[1:]):
            if name.text.split(" (")[0] not in joules or number.get("text-anchor"):
                continue
            counts.append(number.text != "-")
            known += number.text != "-"
            assert number.text.removesuffix(" sim").removesuffix(" est") == \
                joules[name.text.split(" (")[0]], (name.text, number.text, joules)
            y = float(number.get("y"))
            assert all(float(number.get("x")) > high for _, middle, high in whiskers
                       if y - 12 < middle < y + 6), (name.text, whiskers)
        # What is not known has no bar, and the figure says what lines are.
        bars = re.findall(r'fill[:=]"?rgb\(0%, ?44\.7[^>]* d="M', svg)
        assert len(bars) == known, (bars, known)
        assert any("95 % intervals" in text for text in texts(svg)), texts(svg)
    assert True in counts and False in counts, counts


@case("bars of many regions: the figure is higher, and long names are whole and on no other")
def _(folder):
    names = [f"model.encoder.layers.{number}.self_attn.out_proj.forward" for number in range(24)]
    path = with_regions(folder, names)
    for size, words in ("column", []), ("960x720", []), ("column", [path]):
        svg = drawn(path, *words, "-o", "-", "--format", "svg", "--kind", "regions", "--by", "time",
                    "--size", size).stdout
        root = xml.etree.ElementTree.fromstring(svg)
        rows = sorted((float(element.get("y")), float(element.get("font-size")))
                      for element in root.iter() if element.text in names)
        # One of 25 is what is outside of all regions.
        assert len(rows) >= 23, texts(svg)
        assert all(y + text <= other for (y, text), (other, _) in zip(rows, rows[1:])), rows
        assert all(text >= 9 for _, text in rows) and not any("…" in text for text in texts(svg))
        scale = float(re.search(r"scale\(([\d.]+)\)", svg)[1])
        assert rows[-1][0] < float(root.get("height")[:-2]) / scale - 50, rows


@case("energy that a device lacks is drawn of no region: time is, and the figure says why")
def _(folder):
    lost = change(folder, "lost.sqlite", ["UPDATE sample SET gpu1_energy_J = NULL, "
                                          "gpu1_power_W = NULL, gpu1_power_average_W = NULL"], TREE)
    part = change(folder, "part.sqlite", [
        "UPDATE sample SET gpu1_energy_J = NULL, gpu1_power_W = NULL, gpu1_power_average_W = NULL "
        "WHERE time_ns > (SELECT avg(time_ns) FROM sample)"], TREE)
    for path, kind in itertools.product((lost, part), ("regions", "flame")):
        words = path, "-o", "-", "--format", "svg", "--kind", kind
        done = plot(*words)
        note = rf"note: {path}: by time, as there is no energy by region \(.+\)\n"
        assert done.returncode == 0 and re.fullmatch(note, done.stderr), done
        found = texts(done.stdout)
        assert any(text.startswith("Time by region") for text in found), found
        assert any(f"{path.stem}: no energy by region (" in text for text in found), found
        by = texts(drawn(*words, "--by", "time").stdout)
        assert not any("no energy" in text for text in by), by
        assert f"{path}: no energy by region (" in refused(*words, "--by", "energy", status=1)
        drawn(TREE, *words[1:], "--by", "energy")
    both = " ".join(texts(drawn(TREE, lost, "-o", "-", "--format", "svg", "--kind",
                                "regions").stdout))
    assert "Energy by region" in both and "lost: no energy by region" in both, both
    assert "v1-tree: no energy" not in both, both


@case("figures of whole runs name the command, the number of runs, and what is no measurement")
def _(folder):
    tree, runs = TREE, RECORDINGS / "v1-eight-runs.sqlite"
    for kind, recordings, title, heading in [
            ("regions", [tree], "Energy by region, 1 run: bash tree.sh", None),
            ("flame", [tree], "Energy by region, 1 run: bash tree.sh",
             "Energy (simulated, kJ)"),
            ("energy", [tree, tree], "Energy and time, 2 runs: bash tree.sh", None),
            ("repeats", [tree], "Repeated runs, 1 run: bash tree.sh", "Energy (simulated, kJ)"),
            ("repeats", [runs], "Repeated runs, 8 runs: ./burn 0.15 0.2 20", None)]:
        found = texts(drawn(*recordings, "-o", "-", "--format", "svg", "--kind", kind).stdout)
        assert title in found and (heading is None or heading in found), (kind, found)
    # A part of a flame that the report does not know is hatched, and the note says so.
    energy = drawn(tree, "-o", "-", "--format", "svg", "--kind", "flame").stdout
    times = drawn(tree, "-o", "-", "--format", "svg", "--kind", "flame", "--by", "time").stdout
    for svg, is_hatched in (energy, True), (times, False):
        assert (re.search(r'stroke-width[:=]"?2\b', svg) is not None) == is_hatched, svg
        assert any(text.startswith("Hatched: ") for text in texts(svg)) == is_hatched, texts(svg)


@case("repeated runs at the width of a column: the legend has the commands, and no axis is cut")
def _(folder):
    numbers = folder / "numbers"
    numbers.write_text("3\n1\n2\n")
    path = folder / "sort.sqlite"
    subprocess.run([tap.WATTMETER, "run", "-q", "-r", "2", "--vs", f"sort -n {numbers}", "--vs",
                    f"sort -r {numbers}", "--record", path, "--", "sort", numbers], check=True,
                   timeout=300, stdout=subprocess.DEVNULL, env=plain_environment(
                       WATTMETER_NVML=str(tap.BUILD / "tests/fake/libnvidia-ml.so.1")))
    svg = drawn(path, "-o", "-", "--format", "svg", "--kind", "repeats", "--size", "column",
                "--title", "Sorted").stdout
    found = texts(svg)
    for command in "sort /", "sort -n /", "sort -r /":
        assert sum(text.startswith(command) for text in found) == 1, (command, found)
    assert not any("…" in element.text for element in axes_of(svg)[1]), found
    # A long title takes two lines, and what it lacks is seen.
    words = "one two three four five six seven eight nine ten eleven twelve".split()
    for count in 12, 40:
        found = texts(drawn(TREE, "-o", "-", "--format", "svg", "--size", "column", "--channels",
                            "power", "--title", " ".join((words * 4)[:count])).stdout)
        lines = [text for text in found if set(re.split("[ …]", text)) & set(words)]
        assert len(lines) == 2 and ("…" in "".join(lines)) == (count > 12), lines


@case("a flame graph: regions above those around them, with figures under the mouse")
def _(folder):
    for recording, by in (TREE, "energy"), (TREE, "time"), (RECORDINGS / "v1-regions.sqlite", "time"):
        svg = drawn(recording, "-o", "-", "--format", "svg", "--kind", "flame", "--by", by).stdout
        boxes = {}
        for element in xml.etree.ElementTree.fromstring(svg).iter():
            if element.tag.endswith("}rect") and len(element):
                path, *figures = element[0].text.splitlines()
                left, top, width = (float(element.get(name)) for name in ("x", "y", "width"))
                boxes[path] = left, top, left + width, figures
        assert (("outer > inner" if recording == TREE else "epoch > a \"b\", c") in
                "\n".join(boxes)), boxes
        run = boxes["(run)"]
        assert abs(run[0] - 16) < 0.01 and abs(run[2] - 944) < 0.01, run
        for path, (left, top, right, figures) in boxes.items():
            around = boxes[path.rsplit(" > ", 1)[0] if " > " in path else "(run)"]
            if path != "(run)":
                assert around[0] <= left + 0.01 and right <= around[2] + 0.01, path
                assert around[1] > top, path
            share = float(next(text for text in figures if "%" in text and "run's" in text)
                          .split()[0])
            assert abs(share - 100 * (right - left) / 928) <= 0.06, (path, figures)
        # Boxes of a row do not overlap.
        rows = {}
        for left, top, right, _ in boxes.values():
            rows.setdefault(top, []).append((left, right))
        for row in map(sorted, rows.values()):
            assert all(one[1] <= other[0] + 0.01 for one, other in zip(row, row[1:])), row
    for form in "png", "pdf":
        drawn(TREE, "-o", folder / f"a.{form}", "--kind", "flame")


@case("text of an SVG is text, with the font that was asked for; fonts are in a PDF")
def _(folder):
    odd = 'a < b & "c"'
    svg = drawn(TREE, "-o", "-", "--format", "svg", "--title", odd).stdout
    found = texts(svg)
    assert {odd, "Power", "(W)", "Time (s)", "gpu0 (simulated)"} <= set(found), found
    assert "<symbol" not in svg and "glyph" not in svg
    bare = texts(drawn(TREE, "-o", "-", "--format", "svg", "--title", odd, "--no-title").stdout)
    assert set(found) - set(bare) == {odd}, bare
    found = texts(drawn(TREE, "-o", "-", "--format", "svg", "--no-legend").stdout)
    assert "Power" in found and "gpu0 (simulated)" not in found, found
    svg = drawn(TREE, "-o", "-", "--format", "svg", "--font", "DejaVu Sans Mono,12").stdout
    assert 'font-family="DejaVu Sans Mono" transform="scale(1.333)"' in svg, svg[:3000]
    drawn(TREE, "-o", folder / "a.pdf")
    pdf = (folder / "a.pdf").read_bytes()
    for packed in pdf.split(b"stream\n")[1::2]:
        try:
            pdf += zlib.decompress(packed)
        except zlib.error:
            pass
    assert b"/FontFile" in pdf


@case("sizes of journals, and a dark style")
def _(folder):
    for size, width, height in [("column", 89, 67), ("page", 183, 122), ("90.5x80mm", 90.5, 80)]:
        svg = drawn(TREE, "-o", "-", "--format", "svg", "--size", size, "--channels",
                    "power,temperature").stdout
        root = xml.etree.ElementTree.fromstring(svg)
        for name, length in ("width", width), ("height", height):
            assert abs(float(root.get(name)[:-2]) - length * 96 / 25.4) < 0.01, root.attrib
        assert 'transform="scale(0.778)"' in svg # 7 of 9 points
        # The names of all axes have one size.
        sizes = {element.get("font-size") for element in root.iter()
                 if "rotate" in element.get("transform", "")}
        assert len(sizes) == 1, sizes
    drawn(TREE, "-o", folder / "a.png", "--size", "column", "--channels", "power")
    assert struct.unpack(">II", (folder / "a.png").read_bytes()[16:24]) == (1052, 792)
    # The frame is drawn over the grid.
    svg = drawn(TREE, "-o", "-", "--format", "svg", "--channels", "gpu0_power_W").stdout
    assert svg.rindex("rgb(89.41") < svg.index("rgb(41.96"), svg
    drawn(TREE, "-o", folder / "b.png", "--style", "dark")
    assert max(pixels(folder / "b.png")[2][2]) < 64


@case("caps: a sweep, the curve of a model, clocks")
def _(folder):
    tables = {
        "sweep": "cap_w,seconds,joules\n300,5,1500\n250,5.1,1200\n150,6,1000\n100,9,1100\n",
        "curve": "cap_w,windows,seconds,joules\n300,1,5,1500\n250,1,5.1,1200\n200,0,,\n"
                 "150,3,6,1000\n100,2,9,1100\n",
        "clocks": "seconds,joules,cap_hz\n0.005,1,1980000000\n0.007,0.8,990000000\n"}
    for name, text in tables.items():
        table = folder / f"{name}.csv"
        table.write_text(text)
        drawn(table, "--kind", "caps", "-o", folder / f"{name}.svg")
        drawn(table, "--kind", "caps", "-o", folder / f"{name}.png")
        rows = pixels(folder / f"{name}.png")
        marked = [x for row in rows[60:] for x, pixel in enumerate(row) if is_blue(pixel)]
        assert max(marked) - min(marked) > 500, name
    drawn(f"a={folder / 'sweep.csv'}", f"b={folder / 'clocks.csv'}", "--kind", "caps", "-o",
          folder / "both.svg")
    figures = {name: (folder / f"{name}.svg").read_text() for name in [*tables, "both"]}
    assert figures["sweep"] == figures["curve"] and len(set(figures.values())) == 3


@case("caps: every point has a label, none lies on another, and a curve has no jumps")
def _(folder):
    curves = {}
    for name in "compute-bound", "memory-bound":
        table = tap.SOURCE / f"tests/data/sweeps/{name}.csv"
        head, *rows = (line.split(",") for line in table.read_text().splitlines())
        caps = [row[head.index("cap_w")] for row in rows]
        svg = drawn(table, "--kind", "caps", "-o", "-", "--format", "svg").stdout
        labels = [element for element in xml.etree.ElementTree.fromstring(svg).iter()
                  if element.tag.endswith("}text") and " W" in element.text]
        assert sorted(label.text.split(" W")[0] for label in labels) == sorted(set(caps)), svg
        places = [(float(label.get("x")), float(label.get("y")), 6 * len(label.text))
                  for label in labels]
        for number, (x, y, _) in enumerate(places):
            for other_x, other_y, width in places[:number]:
                assert abs(y - other_y) > 12 or not other_x - 1 < x < other_x + width, places
        # The intervals of time and energy.
        assert len(re.findall(r'stroke-width[:=]"?1\.2\b', svg)) == 2 * len(labels), svg
        # Each lies around its own point, and the figure says what it is.
        crosses = [[tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", path)]
                   for path in re.findall(r'stroke-width[:=]"?1\.2[^>]* d="([^"]*)"', svg)]
        for (time_low, time_high), (energy_low, energy_high) in zip(crosses[::2], crosses[1::2]):
            assert time_low[0] < energy_low[0] < time_high[0], crosses
            assert energy_high[1] < time_low[1] < energy_low[1], crosses
        assert "95 % intervals" in svg
        bold = [label.text for label in labels if label.get("font-weight") == "bold"]
        assert bold == {"compute-bound": ["100 W: least energy", "125 W: least edp"],
                        "memory-bound": ["100 W: least energy"]}[name], bold
        curves[name] = [[tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", path)]
                        for path in re.findall(r'stroke-width[:=]"?1\.6[^>]* d="([^"]*)"', svg)]
    assert curves["compute-bound"] == [] # measured points that no smooth curve fits
    curve, = curves["memory-bound"]
    assert len(curve) > 5 and curve == sorted(curve, reverse=True), curve


@case("what cannot be drawn is refused in one line, and leaves nothing behind")
def _(folder):
    empty = folder / "empty.sqlite"
    empty.touch()
    text = folder / "text.csv"
    text.write_text("not,a,recording\n1,2,3\n")
    half = folder / "half.csv"
    half.write_text("cap_w,seconds,joules\n300,5,1500\n200,6,\n")
    no_samples = change(folder, "no-samples.sqlite", ["DELETE FROM sample"])
    nothing = change(folder, "nothing.sqlite", ["UPDATE sample SET \"gpu0_power_W\" = NULL"])
    beyond = change(folder, "beyond.sqlite", ["UPDATE sample SET \"gpu0_power_W\" = 9e999"])
    there = folder / "there.svg"
    there.write_text("mine")
    out = folder / "out.svg"
    before = sorted(folder.iterdir())
    for status, words, arguments in [
            (2, "--output FILE is missing", [TREE]),
            (1, "empty", [empty, "-o", out]),
            (1, "not a recording", [text, "-o", out]),
            (1, "No such file", [folder / "none.sqlite", "-o", out]),
            (1, "no sample", [no_samples, "-o", out]),
            (1, "column gpu0_power_W: not a number", [beyond, "-o", out]),
            (1, "no value to draw", [nothing, "-o", out, "--channels", "gpu0_power_W"]),
            (2, "nothing of 'memory' is among", [TREE, "-o", out, "--channels", "power",
                                                 "--layout", "power,memory"]),
            (2, "third axis", [TREE, "-o", out, "--layout", "power+memory+temperature"]),
            (2, "names no panel", [TREE, "-o", out, "--channels", "power", "--layout", " ,/"]),
            (2, "only --kind time takes", [TREE, "-o", out, "--kind", "energy", "--fit"]),
            (2, "none of svg png pdf mp4 gif", [TREE, "-o", folder / "out.bmp"]),
            (2, "none of svg png pdf mp4 gif", [TREE, "-o", folder / "out"]),
            (2, "none of svg png pdf mp4 gif", [TREE, "-o", folder / "out.html"]),
            (1, "exists already", [TREE, "-o", there]),
            (1, "No such file", [TREE, "-o", folder / "none/out.svg"]),
            (1, "No space left", [TREE, "-o", "/dev/full", "--format", "svg"]),
            (2, "is what is to be read", [no_samples, "-o", no_samples, "--overwrite",
                                            "--format", "svg"]),
            (2, "neither a number", [TREE, "-o", out, "--from", "noon"]),
            (2, "neither a number", [TREE, "-o", out, "--from=-5"]),
            (2, "neither a number", [TREE, "-o", out, "--from", "5e9"]),
            (2, "not before --to", [TREE, "-o", out, "--from", "2", "--to", "1"]),
            (1, "no sample from --from to --to; the last one is at 1.", [TREE, "-o", out, "--from",
                                                                         "1000"]),
            (2, "is no size", [TREE, "-o", out, "--size", "960"]),
            (2, "is no size", [TREE, "-o", out, "--size", "20x10mm"]),
            (2, "is no size", [TREE, "-o", out, "--size", "letter"]),
            (2, "no font 'No Such Font'", [TREE, "-o", out, "--font", "No Such Font,9"]),
            (2, "no size from 3 to 72", [TREE, "-o", out, "--font", "DejaVu Sans,900"]),
            (2, "none of light dark", [TREE, "-o", out, "--style", "grey"]),
            (2, "too small", [TREE, "-o", out, "--size", "100x100"]),
            (2, "for png", [TREE, "-o", out, "--dpi", "150"]),
            (2, "--fps: is for films", [TREE, "-o", out, "--fps", "10"]),
            (2, "--speed: is for films", [TREE, "-o", out, "--speed", "10"]),
            (2, "--window: is for films", [TREE, "-o", out, "--window", "10s"]),
            (2, "only --kind time takes", [TREE, "-o", out, "--kind", "energy", "--from", "1"]),
            (1, "has no regions", [RECORDINGS / "v1-load.aipm", "-o", out, "--kind", "regions"]),
            (1, "has no regions", [RECORDINGS / "v1-load.aipm", "-o", out, "--kind", "flame"]),
            (2, "one recording at a time", [TREE, TREE, "-o", out, "--kind", "flame"]),
            (2, "--by: is for --kind regions or flame", [TREE, "-o", out, "--by", "time"]),
            (2, "none of energy time", [TREE, "-o", out, "--kind", "flame", "--by", "calls"]),
            (1, "energy is not known", [nothing, "-o", out, "--kind", "energy"]),
            (1, "without 'cap_w'", [text, "-o", out, "--kind", "caps"]),
            (1, "needs a table by `wattmeter cap profile`", [TREE, "-o", out, "--kind", "caps"]),
            (1, "one of seconds and joules alone", [half, "-o", out, "--kind", "caps"]),
            (2, "has no runs", [half, "-o", out, "--kind", "caps", "--run", "1"])]:
        said = refused(*arguments, status=status)
        assert words in said, (words, said)
        assert sorted(folder.iterdir()) == before, said
    assert there.read_text() == "mine"


def with_metrics(folder, metric="accuracy"):
    """A recording whose program has reported its accuracy."""
    start = "(SELECT min(time_ns) FROM sample)"
    points = ", ".join(f"json_array({start} + {i * 100_000_000}, {1 - 0.5 ** i})"
                       for i in range(1, 6))
    return change(folder, "metrics.sqlite", ["UPDATE run SET result = json_set(result, "
                  f"'$.metrics.series', json_object('{metric}', json_array({points})))"], TREE)


@case("an unknown channel gets the list of all that there are")
def _(folder):
    path = with_metrics(folder)
    for option, word, arguments in [("--channels", "gpu7", ["--channels", "power, gpu7"]),
                                    ("--layout", "coffee", ["--layout", "power , coffee"]),
                                    ("--layout", "", ["--layout", "power,''/memory"])]:
        done = plot(path, "-o", folder / "out.svg", *arguments)
        first, *lines = done.stderr.splitlines()
        assert done.returncode == 2 and not (folder / "out.svg").exists(), done
        assert first == (f"wattmeter plot: {option}: there is no channel '{word}'; "
                         "choose from these:"), first
        assert all(len(line) <= 80 for line in lines), lines
        names = set(" ".join(lines).replace(",", "").split())
        channels = {row[0] for row in
                    sqlite3.connect(TREE).execute("SELECT column_name FROM channel")}
        assert channels | {"accuracy", "power", "temperature"} <= names, channels - names
        # Each of them is drawn, or has no value.
        for name in channels | {"accuracy"}:
            done = plot(path, "-o", "-", "--format", "svg", "--channels", name)
            assert done.returncode == 0 or "no value to draw" in done.stderr, (name, done)


@case("a blank after a comma; joules of a counter; a metric of the program")
def _(folder):
    path = with_metrics(folder)
    drawn(path, "--channels", "gpu0, accuracy ", "-o", folder / "a.svg")
    drawn(path, "--channels", "gpu0,accuracy", "-o", folder / "b.svg")
    assert (folder / "a.svg").read_text() == (folder / "b.svg").read_text()
    # Both grow from the lower left to the upper right.
    for name in "gpu0_energy_J", "accuracy":
        drawn(path, "--channels", name, "--no-regions", "--title", name, "--overwrite",
              "-o", folder / "a.png")
        rows = pixels(folder / "a.png")
        lowest = {}
        for y in range(70, 660):
            for x in range(80, 940):
                if is_blue(rows[y][x]):
                    lowest[x] = y
        places = [lowest[x] for x in sorted(lowest)]
        assert places[0] > 550 and places[-1] < 200, (name, places[0], places[-1])
        assert all(later <= place + 2 for place, later in zip(places, places[1:])), places


@case("a layout names a metric with a blank and a slash in quotes")
def _(folder):
    path = with_metrics(folder, "top 5/accuracy")
    svg = drawn(path, "-o", "-", "--format", "svg", "--size", "960x720", "--layout",
                "power/'top 5/accuracy',memory").stdout
    assert {name.text for name in axes_of(svg)[1]} >= {"Power (W)", "top 5/accuracy"}, svg


@case("the command alone, without what draws, says what is missing")
def _(folder):
    command = folder / "wattmeter"
    shutil.copy(tap.WATTMETER, command)
    arguments = [TREE, "-o", folder / "out.svg"]
    assert "cairo and pango" in refused(*arguments, status=1, command=command)
    (folder / MODULE).write_text("no library")
    said = refused(*arguments, status=1, command=command)
    assert "apt install libcairo2 libpangocairo-1.0-0" in said, said
    assert b"libcairo.so" not in Path(tap.WATTMETER).read_bytes()


def need_ffmpeg():
    if not shutil.which("ffmpeg"):
        raise tap.Skip("there is no ffmpeg")


def filmed(path, *arguments, suffix=".mp4"):
    """The pictures of a film of 960 x 720: a function of row and column for each."""
    target = path.with_suffix(suffix)
    drawn(path, "-o", target, "--overwrite", "--dpi", "96", "--channels", "gpu0_power_W",
          "--title", "Film", *arguments)
    raw = subprocess.run(["ffmpeg", "-v", "error", "-i", target, "-f", "rawvideo", "-pix_fmt",
                          "rgb24", "-vsync", "0", "-"], stdout=subprocess.PIPE, check=True).stdout
    size = 3 * 960 * 720
    assert len(raw) % size == 0
    return [raw[at:at + size] for at in range(0, len(raw), size)]


def columns_of(picture, rows):
    """Where in the panel these rows of a picture have the line."""
    return {x for y in rows for x in range(78, 940)
            if is_blue(picture[3 * (960 * y + x):3 * (960 * y + x) + 3])}


def programs(folder, ffmpeg):
    """A PATH with the programs of this machine, but for ffmpeg, which is this script."""
    folder.mkdir()
    (folder / "ffmpeg").write_text(f"#!/bin/sh\n{ffmpeg}\n")
    (folder / "ffmpeg").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@case("a film: the window follows the newest sample, by the rules of all axes")
def _(folder):
    need_ffmpeg()
    # Ten samples a second, and one that stands out: after 1.5 s.
    path = record(folder, 41, lambda i: 400 if i == 15 else 50 + i % 2)
    left, right = 76, 942
    for suffix in ".mp4", ".gif":
        pictures = filmed(path, "--fps", "10", "--window", "2s", suffix=suffix)
        assert len(pictures) == 41, len(pictures)
        for number, picture in enumerate(pictures):
            newest = number / 10
            oldest = max(0, newest - 2)
            place = lambda when: left + (right - left) * (when - oldest) / (newest + 1 - oldest)
            high = columns_of(picture, range(100, 300, 8))
            if oldest < 1.5 < newest:
                assert high and all(abs(x - place(1.5)) < 0.1 * (place(1) - place(0)) + 3
                                    for x in high), (number, high, place(1.5))
            elif number > 0 and not oldest - 0.05 <= 1.5 <= newest + 0.05:
                line = columns_of(picture, range(80, 660, 2))
                # The values of all that is seen fill the panel but for their margins.
                assert line and abs(max(line) - place(newest)) < 4, (number, max(line))


@case("the first picture of a film has the first sample of a driver that answers late")
def _(folder):
    need_ffmpeg()
    pictures = filmed(record(folder, 5, lambda i: 100, late_ns=40_000_000), "--fps", "10")
    assert len(pictures) == 5, len(pictures)
    assert all(columns_of(picture, range(80, 660)) for picture in pictures)
    # A rate has no value before the second tick; its panel is there.
    cpu = change(folder, "cpu.sqlite", [], TREE)
    target = folder / "cpu.mp4"
    drawn(cpu, "-o", target, "--dpi", "96", "--fps", "5")
    raw = subprocess.run(["ffmpeg", "-v", "error", "-i", target, "-frames:v", "1", "-f",
                          "rawvideo", "-pix_fmt", "gray", "-"], stdout=subprocess.PIPE,
                         check=True).stdout
    drawn(cpu, "-o", folder / "cpu.png")
    still = pixels(folder / "cpu.png")
    labelled = [y for y in range(720) if any(pixel[0] < 128 for pixel in still[y][:30])]
    missing = [y for y in labelled if min(raw[960 * y:960 * y + 30]) >= 160]
    assert labelled and len(missing) < len(labelled) // 10, missing


@case("how long a film is: --speed, --fps, --from and --to; too long is refused")
def _(folder):
    need_ffmpeg()
    path = record(folder, 41, float)
    for count, arguments in [(9, ["--fps", "2"]), (5, ["--fps", "2", "--speed", "2"]),
                             (3, ["--fps", "2", "--from", "1", "--to", "2"]),
                             (17, ["--fps", "2", "--speed", "0.5"])]:
        assert len(filmed(path, *arguments)) == count, arguments
    said = refused(path, "-o", folder / "b.mp4", "--speed", "0.001", status=2)
    assert "--film would last" not in said and "the film would last 67 min" in said, said
    one = record(folder, 1, lambda i: 50)
    assert len(filmed(one)) == 1


@case("films that are not to be had: one line, and no file")
def _(folder):
    path = record(folder, 20, float)
    no_samples = change(folder, "no-samples.sqlite", ["DELETE FROM sample"])
    there = folder / "there.mp4"
    there.write_text("mine")
    out = folder / "out.mp4"
    fails = programs(folder / "fails", "echo a remark >&2; echo it is broken >&2; exit 3")
    reads = programs(folder / "reads", "cat >/dev/null")
    before = sorted(folder.iterdir())
    for status, words, arguments, variables in [
            (1, "a film needs ffmpeg: apt install ffmpeg", [path, "-o", out],
             {"PATH": "/nonexistent"}),
            (1, "ffmpeg: it is broken", [path, "-o", out], {"PATH": fails}),
            (1, "exists already", [path, "-o", there], {}),
            (2, "a film needs a file", [path, "-o", "-", "--format", "mp4"], {}),
            (2, "a film needs a file", [path, "-o", "/dev/null", "--format", "mp4"], {}),
            (2, "--kind energy: is no film", [path, "-o", out, "--kind", "energy"], {}),
            (2, "--fps: 1 to 50 in a GIF", [path, "-o", folder / "out.gif", "--fps", "60"], {}),
            (2, "--fps", [path, "-o", out, "--fps", "0"], {}),
            (2, "--speed", [path, "-o", out, "--speed", "0"], {}),
            (2, "--window", [path, "-o", out, "--window", "1ms"], {}),
            (2, "too small", [path, "-o", out, "--size", "100x100"], {}),
            (1, "no sample", [no_samples, "-o", out], {})]:
        said = refused(*arguments, status=status, **{"PATH": reads, **variables})
        assert words in said, (words, said)
        assert sorted(folder.iterdir()) == before, said
    assert there.read_text() == "mine" and not Path("/dev/null").is_file()


@case("a film where SIGCHLD is ignored, so that nobody is told how ffmpeg ended")
def _(folder):
    need_ffmpeg()
    path = record(folder, 20, float)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    process = subprocess.Popen([tap.WATTMETER, "plot", path, "-o", folder / "out.gif"],
                               env=plain_environment(), stderr=subprocess.PIPE)
    signal.signal(signal.SIGCHLD, before)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0 and not said, said
    assert (folder / "out.gif").read_bytes().startswith(b"GIF8")


@case("Ctrl-C while a film is made leaves nothing behind, ffmpeg neither")
def _(folder):
    path = record(folder, 20, float)
    pid_file = folder / "pid"
    stands = programs(folder / "bin", "head -c 100000 >/dev/null; "
                      f"echo $$ >{pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 1000")
    process = subprocess.Popen([tap.WATTMETER, "plot", path, "-o", folder / "out.mp4"],
                               env=plain_environment(PATH=stands), stderr=subprocess.PIPE)
    wait_for(pid_file.exists, "a part of a picture")
    assert any(".wattmeter-new" in path.name for path in folder.iterdir())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGINT, (process.returncode, said)
    assert said == b"wattmeter plot: the film was given up\n", said
    assert not Path("/proc", pid_file.read_text().strip()).exists()
    assert {name.name for name in folder.iterdir()} == {"bin", "made.sqlite", "pid"}


@case("ffmpeg works at the lowest priority, and a terminal sees how far it is")
def _(folder):
    path = record(folder, 40, float)
    slow = programs(folder / "bin", f"sleep 1.2; nice >{folder}/nice; "
                                "for last; do :; done; cat >\"${last#file:}\"")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(tap.WATTMETER, ["wattmeter", "plot", str(path), "-o", str(folder / "out.mp4")],
                  plain_environment(PATH=slow, TERM="xterm"))
    said = b""
    try:
        while part := os.read(terminal, 65536):
            said += part
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert status == 0 and b"picture 118 of 118" in said, (status, said)
    assert (folder / "nice").read_text().strip() == "19"
    # 3.9 s of 30 pictures each, of four bytes a pixel.
    assert (folder / "out.mp4").stat().st_size == 118 * 960 * 720 * 4


tap.main()
