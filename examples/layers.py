# SPDX-License-Identifier: Apache-2.0
"""The time and the joules of every layer of a network, while it is trained and used."""

import torch

import wattmeter.torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 8, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(8 * 14 * 14, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))

with wattmeter.torch.layers(model) as m:
    for _ in range(30):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    with torch.no_grad():
        model(images)

print(m)
dearest = max(m.table, key=lambda row: row.own.value)
print(f"Most time is spent in {dearest.path}, a {dearest.type}: {dearest.own}.")
