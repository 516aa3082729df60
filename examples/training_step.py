# SPDX-License-Identifier: Apache-2.0
"""Joules of a training step, with PyTorch where it is installed, else with a plain loop."""

import wattmeter

try:
    import torch
except ImportError:
    torch = None


def make_plain_step():
    weights = [0.0] * 100

    def step():
        for i in range(200_000):
            weights[i % 100] += 0.01 * (i - weights[i % 100])

    return step, lambda: None


def make_torch_step():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Linear(512, 512).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(256, 512, device=device)

    def step():
        with wattmeter.region("forward"):
            loss = model(inputs).square().mean()
        with wattmeter.region("backward"):
            optimizer.zero_grad()
            loss.backward()
        with wattmeter.region("update"):
            optimizer.step()

    # A call only queues the work of a GPU.
    return step, torch.cuda.synchronize if device == "cuda" else lambda: None


step, wait = make_torch_step() if torch else make_plain_step()
STEPS = 20

step()  # The first one loads and compiles.
wait()
with wattmeter.measure() as m:
    for _ in range(STEPS):
        step()
    wait()
print(f"{m.seconds / STEPS * 1000:.1f} ms per step, {m.energy} for {STEPS} steps")
if m.energy.value is not None:
    print(f"{m.energy.value / STEPS:.3g} J per step")

with wattmeter.track(interval=0.01) as t:
    for _ in range(STEPS):
        with wattmeter.region("step"):
            step()
            wait()
for place in t.report.paths:
    print(f"{place.name}: {place.calls} calls, {place.time}, {place.energy}")
