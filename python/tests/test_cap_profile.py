# SPDX-License-Identifier: Apache-2.0
"""power_cap_profiler(): the best cap of a card whose best cap is known, and all put back."""

import json

import pytest

from test_cap import Capped, EARLIER

IDLE, LINEAR, CUBIC, FIXED, WORK = 40, 30, 230, 0.001, 0.004
LOWEST, DEFAULT = 100, 300

# The program's work is as fast as the card's clock, which is as high as the cap lets it be.
WORLD = f"""
    import json, struct, sys, time, wattmeter

    def truth(cap):
        low, high = 0.1, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            power = {IDLE} + {LINEAR} * middle + {CUBIC} * middle ** 3
            low, high = (middle, high) if power <= cap else (low, middle)
        seconds = {FIXED} + {WORK} / low
        return seconds, seconds * ({IDLE} + {LINEAR} * low + {CUBIC} * low ** 3)

    end = time.monotonic()

    # Until so long after the last one should have ended: what was late a little does not add up.
    def step(*_):
        global end
        try:
            cap = struct.unpack("d", open(sys.argv[1], "rb").read(8))[0]
        except OSError:
            cap = {EARLIER}
        end = max(end, time.monotonic() - 0.05) + truth({EARLIER} if cap != cap else cap)[0]
        time.sleep(max(end - time.monotonic(), 0))
"""


@pytest.fixture
def card(tmp_path):
    return Capped(
        tmp_path,
        {
            "power_limit_default": DEFAULT,
            "power_limit_min": LOWEST,
            "physics_idle": IDLE,
            "physics_linear": LINEAR,
            "physics_cubic": CUBIC,
        },
    )


def test_a_step(card):
    found = json.loads(card.run(WORLD + """
    choice = wattmeter.power_cap_profiler(step, objective="edp", window=0.4, probes=5)
    seconds, joules = truth(choice.cap)
    best = min(t * e for t, e in map(truth, range(100, 301)))
    print(json.dumps([choice.cap, choice.is_gain, seconds * joules / best, choice.saving[0],
                      1 - joules / truth(300)[1], str(choice), choice.csv.count("\\n"), repr(choice)]))
    """, str(card.settings)))
    cap, is_gain, over_best, saving, real_saving, text, lines, shown = found
    assert shown.startswith(f"<CapChoice: {cap:g} W, better than") and len(shown) < 100
    assert LOWEST <= cap <= DEFAULT and is_gain
    assert over_best < 1.05
    assert saving == pytest.approx(real_saving, abs=0.06)
    assert "best for edp" in text and lines > 100
    assert card.watts() == EARLIER


def test_a_step_that_fails(card):
    process = card.start(WORLD + """
    wattmeter.power_cap_profiler(lambda: 1 / 0, window=0.1)
    """, str(card.settings))
    assert "ZeroDivisionError" in process.communicate(timeout=300)[1]
    assert process.returncode == 1 and card.watts() == EARLIER


@pytest.mark.parametrize(
    "words", ["window=0", "objective='speed'", "probes=1", "gpu=7", "max_slowdown=-1"]
)
def test_what_is_wrong(card, words):
    process = card.start(WORLD + f"""
    try:
        wattmeter.power_cap_profiler(step, {words})
    except (ValueError, wattmeter.Error) as error:
        print(error)
    """, str(card.settings))
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and out.count("\n") == 1, err
    assert card.watts() == EARLIER


TORCH = """
    import random, torch
    from wattmeter.compat.profiler import power_cap_profiler

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 2)
            self.norm = torch.nn.BatchNorm1d(2)
        def forward(self, x):
            step()
            return self.norm(self.linear(x))

    torch.manual_seed(1)
    net = Net()
    loader = [(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(3)]
    loss = torch.nn.functional.mse_loss
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    loss(net(loader[0][0]), loader[0][1]).backward()
    optimizer.step()
    def state():
        return repr([net.state_dict(), optimizer.state_dict(), torch.get_rng_state().tolist(),
                     random.getstate(), net.training, [p.grad for p in net.parameters()]])
    before = state()
"""


@pytest.mark.parametrize("train", [True, False])
def test_a_network_is_afterwards_as_it_was(card, train):
    pytest.importorskip("torch")
    words = "train=True, loss_fn=loss, optimizer=optimizer, " if train else ""
    out = card.run(WORLD + TORCH + f"""
    cap = power_cap_profiler(net, loader, gpu_num=0, {words}out_file=sys.argv[2],
                             window=0.3, probes=4)
    assert state() == before, "something has changed"
    print(type(cap).__name__, 100 <= cap <= 300, open(sys.argv[2]).readline()[:13])
    """, str(card.settings), str(card.folder / "out.csv"))
    assert out == "int True cap_w,windows\n"
    assert card.watts() == EARLIER


def test_training_needs_what_it_needs(card):
    pytest.importorskip("torch")
    out = card.run(WORLD + TORCH + """
    for words in {"train": True}, {"train": True, "loss_fn": loss}, {"dataloader": []}:
        try:
            power_cap_profiler(**{"model": net, "dataloader": loader, "window": 0.1, **words})
        except ValueError as error:
            print(error)
    assert state() == before
    """, str(card.settings))
    assert out.count("\n") == 3 and "no batches" in out


def test_several_gpus_that_are_slowed_down(tmp_path):
    hot = 1 << 6  # NVML's bit of a slowdown by heat
    card = Capped(tmp_path, {"power_limit_default": DEFAULT, "physics_idle": IDLE, "throttle": hot})
    out = card.run(WORLD + """
    choice = wattmeter.power_cap_profiler(step, gpu="all", window=0.1, probes=2, progress=print)
    print(choice.details["reason"])
    """, str(card.settings))
    assert out.startswith("window 1: 300 W; about ")
    assert out.count("slowed down (hw_thermal_slowdown): once more\n") >= 4
    assert out.count("note: the GPU is slowed down (hw_thermal_slowdown); it counts\n") >= 1
    assert card.watts() == EARLIER


def test_a_profile_by_hand(card):
    out = card.run("""
    import wattmeter
    from wattmeter import _core

    profile = _core.CapProfile("0", objective="ed2p", probes=2, window=0.05)
    assert "window 1: 300 W" in profile.step(0)
    for wrong in lambda: profile.answer("xml"), lambda: _core.CapProfile("0", objective="speed"):
        try:
            wrong()
        except ValueError as error:
            print(error)
    try:
        profile.answer()
    except wattmeter.Error as error:
        print(error)
    profile.close()
    profile.close()
    """, str(card.settings))
    assert out.count("\n") == 3 and "too little was measured" in out
    assert card.watts() == EARLIER
