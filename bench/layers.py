#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What measuring the layers of a PyTorch network costs it, and how its times compare to
those of PyTorch's own profiler; `make bench` calls it after python.py. Prints tables as
bench.py does, and writes build/bench-layers.json.

PyTorch is that of this interpreter, or else that of /usr/bin/python3; without any, it says
so.
"""

import functools
import json
import os
import statistics
import subprocess
import sys
import time

from bench import BUILD, Row, Table

DEBIAN = "/usr/bin/python3"
OURS = "wattmeter.torch.layers"

try:
    import torch
    from torch import nn
except ImportError:
    torch = None


def cnn():
    """Layers of some milliseconds; each is one operation of PyTorch."""
    net = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48),
                        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(48 * 16 * 16, 256),
                        nn.ReLU(), nn.Linear(256, 10))
    return net, torch.randn(32, 3, 64, 64)


def transformer():
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2), torch.randn(8, 128, 256)


def chain(width, count, each=None):
    """Layers that take `each` seconds in inference on this machine."""
    net, rows = nn.Sequential(*(nn.Linear(width, width) for _ in range(count))), 1
    while each and rows < 4096:
        now = min(seconds(infer, net, torch.randn(rows, width), 1) for _ in range(3)) / count
        if now > 0.8 * each:
            break
        rows = max(rows + 1, min(2 * rows, int(rows * each / now)))
    return net, torch.randn(rows, width)


def infer(net, x):
    with torch.no_grad():
        net(x)


def train(net, x):
    net(x).sum().backward()


def leaves(net):
    return {path: module for path, module in net.named_modules()
            if path and not list(module.children())}


def seconds(step, net, x, count):
    begin = time.perf_counter()
    for _ in range(count):
        step(net, x)
    return (time.perf_counter() - begin) / count


def profiled(step, net, x, count):
    """Passes that both measure, as no two passes take the same time: mean seconds of a call
    of each layer by us, (forward, backward), and what the profiler has."""
    import wattmeter.torch

    with wattmeter.torch.layers(net) as m, \
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        for _ in range(count):
            step(net, x)
    ours = {row.path: (row.forward.value / row.calls, (row.backward.value or 0) / row.calls)
            for row in m.table if row.is_leaf and row.calls}
    return ours, p


# The operation of the engine with which the backward pass of a layer begins.
FIRST = {"Conv2d": "ConvolutionBackward0", "BatchNorm2d": "NativeBatchNormBackward0",
         "ReLU": "ReluBackward0", "MaxPool2d": "MaxPool2DWithIndicesBackward0",
         "Linear": "AddmmBackward0", "Flatten": ("ViewBackward0", "ReshapeAliasBackward0",
                                                 "UnsafeViewBackward0")}


def compare_forward(net, x, count):
    """The profiler has a range around each call."""
    ranges, handles = {}, []

    def enter(path, *_):
        ranges[path] = torch.profiler.record_function(f"layer {path}")
        ranges[path].__enter__()

    def leave(path, *_):
        ranges[path].__exit__(None, None, None)

    for path, module in leaves(net).items():
        handles.append(module.register_forward_pre_hook(functools.partial(enter, path)))
        handles.append(module.register_forward_hook(functools.partial(leave, path)))
    ours, p = profiled(infer, net, x, count)
    for handle in handles:
        handle.remove()
    theirs = {event.key[6:]: event.cpu_time_total / event.count / 1e6
              for event in p.key_averages() if event.key.startswith("layer ")}
    return difference({path: pair[0] for path, pair in ours.items()}, theirs)


def compare_backward(net, x, count):
    """Of a chain of layers. What comes before that of the last layer is the loss."""
    ours, p = profiled(train, net, x, count)
    prefix = "autograd::engine::evaluate_function: "
    events = sorted((e for e in p.events() if e.name.startswith(prefix)),
                    key=lambda e: e.time_range.start)
    order = list(reversed(leaves(net).items()))
    total, place = dict.fromkeys(leaves(net), 0.0), -1
    for event in events:
        name = event.name[len(prefix):]
        following = order[(place + 1) % len(order)]
        first = FIRST[type(following[1]).__name__]
        if name == first or name in first and isinstance(first, tuple):
            place = (place + 1) % len(order)
        elif name in ("SumBackward0", "ExpandBackward0"):
            place = -1
        if place >= 0:
            total[order[place][0]] += event.cpu_time
    theirs = {path: value / count / 1e6 for path, value in total.items()}
    return difference({path: pair[1] for path, pair in ours.items()}, theirs)


def difference(ours, theirs):
    """Of all layers that take a part worth naming: the median, and the one that is worst."""
    whole = sum(theirs.values())
    apart = [abs(ours[path] / value - 1) for path, value in theirs.items()
             if value > 0.02 * whole]
    return statistics.median(apart), max(apart)


def measure_agreement(rounds=3, count=5):
    for name, make, compare, what in (("CNN", cnn, compare_forward, "forward"),
                                      ("CNN", cnn, compare_backward, "backward"),
                                      ("transformer", transformer, compare_forward, "forward")):
        net, x = make()
        seconds(train, net, x, 2)
        samples = [compare(net, x, count) for _ in range(rounds)]
        yield Table(f"{name}, {what}: layer times against torch.profiler's, relative", "%", 100,
                    [Row("worst layer", [worst for _, worst in samples]),
                     Row("median layer", [middle for middle, _ in samples])], 0.05)


def added(step, net, x, count, rounds):
    """Seconds of a step without and with, in turns; who is first takes turns, too, as what
    comes second finds a warmer machine."""
    import wattmeter.torch

    def without():
        seconds(step, net, x, 2)
        return seconds(step, net, x, count)

    def with_layers():
        with wattmeter.torch.layers(net):
            return without()

    pairs = []
    for number in range(rounds):
        if number % 2:
            ours, bare = with_layers(), without()
        else:
            bare, ours = without(), with_layers()
        pairs.append((bare, ours))
    return pairs


def measure_slowdown():
    for title, net, x, count, budget in (
            ("layers of ten milliseconds", *chain(1024, 12, 0.01), 2, 0.005),
            ("layers of 200 microseconds", *chain(256, 48, 0.0002), 20, 0.02)):
        for name, step in (("inference", infer), ("training", train)):
            pairs = added(step, net, x, count, 15)
            one = statistics.median(bare for bare, _ in pairs) / len(leaves(net))
            yield Table(f"A network with {title}: slowdown in {name}", "%", 100,
                        [Row(OURS, [ours / bare - 1 for bare, ours in pairs])], budget,
                        note=f"a layer takes {1e6 * one:.3g} us")


def measure_calls():
    net, x = chain(4, 96)
    for name, step, budget in (("inference", infer, 1e-6), ("training", train, 1e-5)):
        pairs = added(step, net, x, 50, 25)
        samples = [(ours - bare) / 96 for bare, ours in pairs]
        yield Table(f"Added to a call of a layer in {name}, 96 layers", "us", 1e6,
                    [Row(OURS, samples)], budget)


def measure_end(rounds=3):
    import wattmeter.torch

    net, x = chain(4, 96)
    ends, apart = [], []
    for _ in range(rounds):
        with wattmeter.torch.layers(net) as m:
            seconds(train, net, x, 300)
            end = time.perf_counter()
        ends.append(time.perf_counter() - end)
        table = m.table
        parts = sum(part[0].value for part in (table.leaves, table.containers, table.rest))
        apart.append(abs(parts / table.time.value - 1))
    yield Table("Leaving the block, 96 layers after 300 training steps", "ms", 1e3,
                [Row(OURS, ends)])
    yield Table("Layers, containers and rest against the whole, relative", "%", 100,
                [Row(OURS, apart)], 0.005)


def main():
    if torch is None:
        has_torch = [DEBIAN, "-c", "import torch"]
        if os.path.samefile(sys.executable, DEBIAN) or \
                subprocess.run(has_torch, stderr=subprocess.DEVNULL, check=False).returncode:
            print("\nLayers of a network\n  n/a: there is no PyTorch (python3-torch)")
            return 0
        return subprocess.run([DEBIAN, __file__], check=False).returncode
    sys.path.insert(0, str(BUILD / "python"))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"\nLayers of a network: PyTorch {torch.__version__}, one thread")
    tables = []
    for measure in (measure_agreement, measure_slowdown, measure_calls, measure_end):
        for table in measure():
            table.print()
            sys.stdout.flush()
            tables.append(table)
    text = json.dumps([table.as_json() for table in tables], indent=1)
    (BUILD / "bench-layers.json").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
