# SPDX-License-Identifier: Apache-2.0
"""check_training.py - joules of PyTorch programs beside the GPU's energy counter, and those
of a network's layers beside their sum."""

import statistics
import time

import nvml
import tables
from tap import Skip, case, near

SECONDS, WARM_UP_S, COUNTER_PERIOD_S = 6, 1, 0.1


def with_gpu():
    """PyTorch and wattmeter, as this interpreter has them."""
    try:
        import torch
        import wattmeter.torch
    except ImportError as error:
        raise Skip(f"no {error.name} in this Python") from error
    if not torch.cuda.is_available():
        raise Skip("this PyTorch has no GPU")
    return torch, wattmeter


def loads(torch):
    """Functions of a second or so each, which end when the GPU has ended."""
    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    network, batch = transformer(torch)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)

    def products(count=600):
        for _ in range(count):
            matrix @ matrix
        torch.cuda.synchronize()

    def bursts():
        for _ in range(10):
            products(30)
            time.sleep(0.05)

    def steps():
        for _ in range(20):
            optimizer.zero_grad()
            network(batch).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()

    return {"idle": lambda: time.sleep(0.5), "matrix products": products,
            "bursts of 25 ms with 50 ms between": bursts, "training steps of a transformer": steps}


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    network = torch.nn.TransformerEncoder(layer, 6).cuda().bfloat16()
    return network, torch.randn(32, 512, 1024, device="cuda", dtype=torch.bfloat16)


def repeat(load, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        load()


@case("training: the joules of a block are those of the energy counter")
def _(folder):
    torch, wattmeter = with_gpu()
    rows = []
    with nvml.Nvml() as driver:
        device = driver.device(0)
        for name, load in loads(torch).items():
            repeat(load, WARM_UP_S)
            begin, before = time.monotonic(), driver.energy(device)
            with wattmeter.measure() as measured:
                repeat(load, SECONDS)
            counted = (driver.energy(device) - before) / 1000
            gpu = measured.devices["gpu0"]
            watts = counted / (time.monotonic() - begin)
            rows.append((name, f"{counted:.1f}", f"{gpu.value:.1f}", f"{gpu.low:.1f} to {gpu.high:.1f}",
                         f"{100 * (gpu.value / counted - 1):+.2f} %"))
            near(gpu.value, counted, 2 * COUNTER_PERIOD_S * watts, name)
            assert gpu.low <= counted + COUNTER_PERIOD_S * watts, name
            assert gpu.high >= counted - COUNTER_PERIOD_S * watts, name
    tables.show(f"training: {SECONDS} s of PyTorch on GPU 0, in joules",
                ("load", "energy counter", "measured", "95 %", "difference"), rows)


@case("training: the layers of a network and the rest are the whole")
def _(folder):
    torch, wattmeter = with_gpu()
    network, batch = transformer(torch)

    def step():
        network(batch).square().mean().backward()
        torch.cuda.synchronize()

    repeat(step, WARM_UP_S)
    with wattmeter.torch.layers(network) as measured:
        repeat(step, SECONDS)
    print("#", str(measured).replace("\n", "\n# "))
    table = measured.table
    for part in 0, 1:
        parts = [pair[part].value for pair in (table.leaves, table.containers, table.rest)]
        whole = (table.time, table.energy)[part].value
        near(sum(parts), whole, 0.001 * whole, ("seconds", "joules")[part])
    busy = sum(row.gpu_time.value for row in table)
    assert 0.5 * table.time.value < busy < 1.01 * table.time.value, (busy, table.time)


@case("training: what measuring its layers adds to each call of a module")
def _(folder):
    torch, wattmeter = with_gpu()
    network = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(100))).cuda()
    batch = torch.randn(8, 64, device="cuda")
    kinds = {"inference": lambda: network(batch), "training": lambda: network(batch).sum().backward()}
    rows = []
    for kind, call in kinds.items():
        def seconds():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            with torch.set_grad_enabled(kind == "training"):
                for _ in range(20):
                    call()
            torch.cuda.synchronize()
            return (time.perf_counter() - begin) / 20

        added = []
        for _ in range(15):
            alone = seconds()
            with wattmeter.torch.layers(network):
                seconds()  # The first calls make the events that later ones use again.
                added.append((seconds() - alone) / (len(network) + 1))
        rows.append((kind, f"{1e6 * alone / len(network):.1f}", f"{1e6 * statistics.median(added):.2f}"))
    tables.show(f"training: microseconds of a Linear(64, 64), PyTorch {torch.__version__}",
                ("", "alone", "added by layers()"), rows)
