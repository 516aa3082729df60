# SPDX-License-Identifier: Apache-2.0
"""wattmeter.torch.profile(): the replays in virtual time, and on real networks."""

import csv
import functools
import itertools
import json
import math
import random

import pytest

from wattmeter._torch import replay
from wattmeter._torch.replay import FIRST, Replays, interval


class Machine:
    """Pieces of work with a duration and a power each, and a counter of energy that moves
    every `period` seconds, by whole steps of `step` joules. Power changes by a few percent
    from block to block, and rises slowly."""

    def __init__(
        self,
        pieces,
        seed,
        *,
        period=0.1,
        step=0.05,
        noise=0.02,
        drift=1e-4,
        reading=5e-5,
    ):
        self.pieces = pieces
        self.random = random.Random(seed)
        self.period, self.step, self.noise, self.drift = period, step, noise, drift
        self.now = self.random.uniform(100, 200)
        self.begin = self.now
        self.joules = 0.0
        self.reading = reading
        self.shown = self.before = 0.0
        self.asked = self.now
        self.due = self.now + self.random.random() * period

    def clock(self):
        self.pass_time(1e-7, 60)
        return self.now

    def energy(self):
        self.pass_time(self.reading, 60)
        joules, self.before = self.shown - self.before, self.shown
        seconds, self.asked = self.now - self.asked, self.now
        return joules, seconds

    def run(self, number, count):
        each, power = self.pieces[number]
        each *= self.random.gauss(1, self.noise / 4)
        power *= self.random.gauss(1, self.noise)
        self.pass_time(each * count, power * self.factor(self.now))

    def factor(self, when):
        return 1 + self.drift * (when - self.begin)

    def pass_time(self, seconds, power):
        end = self.now + seconds
        while self.due <= end:
            self.joules += power * (self.due - self.now)
            self.now = self.due
            self.shown = math.floor(self.joules / self.step) * self.step
            self.due += self.period
        self.joules += power * (end - self.now)
        self.now = end

    def true_joules(self, number):
        """Of one replay, at the mean of the drift."""
        each, power = self.pieces[number]
        return each * power * self.factor((self.begin + self.now) / 2)

    def replays(self, **options):
        options.setdefault("period", self.period)
        options.setdefault("resolution", self.period)
        return Replays(
            len(self.pieces),
            self.run,
            self.clock,
            self.energy,
            self.random,
            **options,
        )


LAYERS = [(50e-6, 320), (60e-6, 110), (1e-3, 400), (3e-3, 90), (0.13, 250)]


def simulate(seed, uncertainty, seconds, **options):
    machine = Machine(LAYERS, seed, **options)
    replays = machine.replays()
    replays.measure(uncertainty, seconds)
    return machine, replays


@pytest.mark.parametrize(
    "uncertainty, options",
    [
        (0.05, {}),
        (0.02, {}),
        (0.05, {"noise": 0.1}),
        (0.02, {"period": 1e-3, "step": 6.1e-5}),
        (0.1, {"period": 0.02, "step": 1e-3, "reading": 0.02}),
    ],
)
def test_intervals_hold_the_truth_and_are_as_narrow_as_asked(uncertainty, options):
    runs = 500
    held = [0] * len(LAYERS)
    narrow = 0
    for seed in range(runs):
        machine, replays = simulate(seed, uncertainty, 1e5, **options)
        for i, piece in enumerate(replays.pieces):
            mean, low, high = interval(*piece.decisive)
            held[i] += low <= machine.true_joules(i) <= high
            narrow += (high - low) / 2 <= uncertainty * mean
    assert min(held) >= 0.92 * runs
    assert sum(held) >= 0.94 * runs * len(LAYERS)
    assert narrow >= 0.98 * runs * len(LAYERS)


def test_what_time_leaves_is_still_true():
    """Seconds for the first rounds and no more, then for fewer than these."""
    for seconds, held_at_least in ((20, 90), (8, 90)):
        held, count = 0, 0
        for seed in range(100):
            machine, replays = simulate(seed, 1e-4, seconds)
            assert machine.now - machine.begin <= seconds + 1
            for i, piece in enumerate(replays.pieces):
                mean, low, high = interval(*piece.decisive)
                assert 2 <= len(piece.joules)
                held += low <= machine.true_joules(i) <= high
                count += 1
            assert replays.missing(1e-4) == len(LAYERS)
        assert 100 * held >= held_at_least * count


def test_a_value_alone_has_no_interval():
    assert interval([3.0]) == (3.0, None, None)
    machine, replays = simulate(0, 0.05, 0.3)
    assert replays.missing(0.05) == len(LAYERS)


def test_steps_that_happen_to_agree_are_no_certainty():
    mean, low, high = interval([2.0] * FIRST, floor=0.1)
    half = pytest.approx(2.365 * 0.2 / math.sqrt(FIRST))
    assert high - mean == half and mean - low == half


def test_without_a_sensor_times_decide():
    machine = Machine(LAYERS, 1)
    machine.energy = lambda: (None, 0.0)
    replays = machine.replays(period=0.0, resolution=0.0)
    replays.measure(0.02, 1e5)
    for piece, (each, power) in zip(replays.pieces, LAYERS):
        assert piece.joules == []
        mean, low, high = interval(piece.seconds)
        assert mean == pytest.approx(each, rel=0.02) and high - low <= 0.04 * mean


def test_a_sensor_is_seen_to_move_first():
    """Also where it is slower than it says."""
    machine = Machine(LAYERS[:1], 1)
    machine.due = machine.now + machine.period
    asked = []
    energy = machine.energy
    machine.energy = lambda: asked.append(energy()) or asked[-1]
    machine.replays(period=1e-3).measure(0.05, 1e5)
    assert asked[0][0] > 0


def test_what_fails_ends_alone():
    machine = Machine(LAYERS, 1)
    run, calls = machine.run, itertools.count()

    def fail_later(number, count):
        if number == 2 and next(calls) > 8:
            raise RuntimeError("full")
        run(number, count)

    machine.run = fail_later
    replays = machine.replays()
    replays.measure(0.05, 1e5)
    assert [piece.why for piece in replays.pieces].count(None) == len(LAYERS) - 1
    assert replays.pieces[2].why == "RuntimeError: full"
    assert replays.missing(0.05) == 0


torch = pytest.importorskip("torch")
nn = torch.nn

from wattmeter.torch import profile

IMAGES = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 8, 8) / 100


class Fails(nn.Module):
    """When it is called with the same tensor's numbers once more."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, x):
        self.seen += 1
        if self.seen > 1:
            raise RuntimeError("only once")
        return x + 1


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
        )
        self.once = Fails()
        self.head = nn.Linear(256, 2)
        self.spare = nn.Linear(2, 2)

    def forward(self, x, scale=1.0):
        y = self.once(self.features(x)).flatten(1)
        return self.head(y) + self.head(y * scale)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True)

    def forward(self, input_ids, mask=None):
        return {"loss": self.layer(self.embed(input_ids), mask).pow(2).mean()}


def bits(model, optimizer):
    """All that must not change."""
    state = [*model.state_dict().values(), *(p.grad for p in model.parameters())]
    for one in optimizer.state.values():
        state += one.values()
    return (
        [s.clone() if torch.is_tensor(s) else s for s in state],
        [(module.training, sorted(vars(module))) for module in model.modules()],
        torch.get_rng_state(),
        random.getstate(),
    )


def are_same(one, other):
    tensors = all(
        torch.equal(a, b) if torch.is_tensor(a) else a == b
        for a, b in zip(one[0], other[0])
    )
    return tensors and one[1] == other[1] and torch.equal(one[2], other[2])


@pytest.fixture
def quick(no_gpus, monkeypatch):
    """Blocks are as short as they can be, and there is time enough."""
    monkeypatch.setattr(replay, "_FIRST_PART", 0)
    return functools.partial(profile, uncertainty=0.9)


@pytest.fixture
def cnn():
    torch.manual_seed(0)
    return Cnn()


@pytest.mark.parametrize("backward", [False, True, lambda y: y.pow(2).sum()])
@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_as_it_was(quick, cnn, training, backward):
    optimizer = torch.optim.Adam(cnn.parameters())
    cnn(IMAGES).sum().backward()
    optimizer.step()
    cnn.once.seen = 0
    cnn.train(training)
    before = bits(cnn, optimizer)
    quick(cnn, (IMAGES, 2.0), backward=backward)
    assert are_same(before, bits(cnn, optimizer))
    assert random.getstate() == before[3] and cnn.once.seen == 0


def test_rows_of_a_network(quick, cnn, tmp_path):
    p = quick(cnn, IMAGES, backward=True)
    assert [row.path for row in p] == [
        *("features.0", "features.1", "features.2", "features.3"),
        *("once", "head", "spare"),
    ]
    assert p["head"].calls == 2 and p["spare"].calls == 0
    assert p["spare"].note == "not called in this pass"
    assert p["once"].note == "RuntimeError: only once" and p["once"].calls == 1
    assert p["once"].time.value is None and "only once" in p["once"].energy.why
    assert "copies" in p["features.2"].note and p["features.0"].note is None
    for row in (p["features.0"], p["head"], p["features.3"]):
        assert row.time.value > 0 and row.time.low < row.time.value < row.time.high
        assert row.energy.value is None and row.energy.why
    table = str(p)
    assert "(between the layers)" in table and "layers() estimates that of" in table
    path = tmp_path / "p.csv"
    p.to_csv(path)
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == len(p) + 2 and rows[0]["path"] == "features.0"
    assert rows[4]["energy_J"] == rows[4]["time_s"] == ""
    assert json.loads(p.to_json())["layers"][-1]["path"] == "(network)"


def test_the_network_itself_cannot_be_replayed(quick, cnn):
    p = quick(cnn, IMAGES)
    assert p.network.note == "RuntimeError: only once"
    assert p.time_between.value is None
    assert p["head"].time.value > 0 and p["head"].share is None


def test_a_transformer(quick):
    net = Transformer()
    ids = torch.arange(12).reshape(2, 6) % 11
    p = quick(net, {"input_ids": ids}, backward=lambda out: out["loss"])
    paths = [row.path for row in p]
    assert "embed" in paths and "layer.self_attn" in paths and "layer.norm2" in paths
    assert all(row.time.value > 0 for row in p)
    assert all(parameter.grad is None for parameter in net.parameters())
    assert p.network.type == "Transformer" and p.time_between.value is not None
    assert p.network.share == 1
    net.eval()
    with torch.no_grad():
        whole = quick(net.layer, net.embed(ids))
    assert whole.rows and whole.network.time.value > 0


def test_joules_of_a_simulated_gpu(quick, fake_gpus, monkeypatch):
    """Its power is constant: the joules are those of the time."""
    fake_gpus("constant")
    monkeypatch.setattr(replay, "FIRST", 3)
    p = quick(nn.Linear(8, 8), torch.ones(4, 8))
    for row in [*p, p.network]:
        assert row.energy.origin == "simulated"
        assert row.energy.low <= row.energy.value <= row.energy.high
        # At the two ends of each block there is a reading of the devices, which takes
        # its time on a busy machine.
        assert 0.9 < row.energy.value / (300 * row.time.value) < 3
    assert any("sensors' own error" in remark for remark in p.remarks)
    assert p.energy_between.value == pytest.approx(
        p.network.energy.value - sum(row.energy.value for row in p)
    )


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((None, IMAGES), TypeError, "torch.nn.Module"),
        ((nn.ReLU(), IMAGES), ValueError, "no parameters"),
        ((nn.Linear(2, 2), torch.ones(3)), ValueError, "with these inputs"),
        ((nn.Linear(2, 2), ()), ValueError, "with these inputs"),
        ((nn.LazyLinear(2), torch.ones(3)), ValueError, "lazy"),
        ((nn.Linear(2, 2), torch.ones(2), 0), ValueError, "uncertainty"),
        ((nn.Linear(2, 2), torch.ones(2), 0.1, 0), ValueError, "seconds"),
        ((nn.DataParallel(nn.Linear(2, 2)), torch.ones(2)), ValueError, "model.module"),
    ],
)
def test_wrong_use_is_refused(no_gpus, arguments, error, text):
    with pytest.raises(error, match=text):
        profile(*arguments)


def test_inputs_that_do_not_fit_leave_the_network_as_it_was(no_gpus, cnn):
    optimizer = torch.optim.SGD(cnn.parameters(), 0.1)
    before = bits(cnn, optimizer)
    with pytest.raises(ValueError, match="with these inputs"):
        profile(cnn, torch.ones(1, 3, 9, 9))
    assert are_same(before, bits(cnn, optimizer))
    assert "forward" not in vars(cnn.head)


def test_nothing_needs_a_gradient(no_gpus):
    net = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(ValueError, match="gradient"):
        profile(net, torch.ones(2), backward=True)
