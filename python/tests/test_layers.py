# SPDX-License-Identifier: Apache-2.0
"""wattmeter.torch.layers: what each layer costs, and what it must not disturb."""

import copy
import csv
import functools
import inspect
import io
import json
import pickle
import threading
import time

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

import wattmeter.torch
from wattmeter.compat.measurement import LayerwiseMeasurementTool

X = torch.arange(2 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 8, 8) / 100


class Net(nn.Module):
    """With containers, an activation in place, and work of its own."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.branches = nn.ModuleList([nn.Linear(64, 8), nn.Linear(64, 8)])
        self.head = nn.Linear(8, 2)

    def forward(self, x, scale=1.0):
        y = self.features(x).flatten(1)
        return self.head(torch.tanh(sum(b(y) for b in self.branches)) * scale)


LAYERS = ["", "features", "features.0", "features.1", "features.2"]
LAYERS += ["branches.0", "branches.1", "head"]


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


def step(model, x=X, **keywords):
    model.zero_grad()
    output = model(x, **keywords)
    output.sum().backward()
    return [output.detach(), *(p.grad.clone() for p in model.parameters())]


def are_equal(some, others):
    return all(torch.equal(a, b) for a, b in zip(some, others))


def check_sums(table):
    """Layers, what containers do themselves and the rest are the whole."""
    parts = [table.leaves, table.containers, table.rest]
    for i, whole in enumerate((table.time, table.energy)):
        if whole.value is not None:
            total = sum(part[i].value for part in parts)
            assert total == pytest.approx(whole.value, rel=0.005)
    assert table.rest[0].value >= 0


def test_every_layer_has_its_calls_and_times(net):
    expected = step(net)
    with wattmeter.torch.layers(net) as m:
        for _ in range(3):
            assert are_equal(step(net), expected)
        with torch.no_grad():
            for _ in range(2):
                net(X, scale=2.0)
    assert [row.path for row in m.table] == LAYERS
    for row in m.table:
        assert row.calls == 5, row
        assert 0 < row.own.value <= m.table.time.value
        inner = [r for r in m.table if r.path.startswith(f"{row.path}.") and r.is_leaf]
        if inner:
            assert row.forward.value >= sum(r.forward.value for r in inner) * 0.999
    assert not m.table["features"].is_leaf and m.table["head"].is_leaf
    in_place = m.table["features.1"]
    assert in_place.backward.value is None and "in place" in in_place.backward.why
    for path in LAYERS:
        if path != "features.1":
            assert m.table[path].backward.value > 0, path
    check_sums(m.table)
    assert are_equal(step(net), expected)


def test_layers_that_are_not_called_use_nothing_for_certain(net):
    with wattmeter.torch.layers(net, interval=0.02) as m:
        time.sleep(0.3)
    table = m.table
    assert {row.calls for row in table} == {0}
    assert (table.leaves[1].low, table.leaves[1].high) == (0, 0)
    assert (table.rest[1].low, table.rest[1].high) == (table.energy.low, table.energy.high)


def test_inference_has_no_backward_pass(net):
    with wattmeter.torch.layers(net) as m, torch.inference_mode():
        net(X)
    assert all(row.calls == 1 for row in m.table)
    assert all(row.backward.value is None for row in m.table)
    assert "backward" not in str(m)
    check_sums(m.table)


def test_the_model_is_put_back(net):
    kinds = [type(one) for one in net.modules()]
    attributes = [set(vars(one)) for one in net.modules()]
    with wattmeter.torch.layers(net):
        assert type(net.head) is not nn.Linear
        assert net.head.__class__ is nn.Linear and isinstance(net.head, nn.Linear)
        assert [set(vars(one)) for one in net.modules()] == attributes
        assert "Linear(in_features=8, out_features=2, bias=True)" in repr(net)
    assert [type(one) for one in net.modules()] == kinds
    with pytest.raises(RuntimeError, match="mat1"):
        with wattmeter.torch.layers(net) as m:
            net.head(torch.zeros(1, 9))
    assert [type(one) for one in net.modules()] == kinds
    assert m.table["head"].calls == 1
    assert are_equal(step(net), step(net))


def test_copies_and_pickles_are_plain(net, python, tmp_path):
    expected = step(net)
    with wattmeter.torch.layers(net) as m:
        shallow = copy.copy(net.head)
        assert type(shallow) is nn.Linear
        deep = copy.deepcopy(net)
        again = pickle.loads(pickle.dumps(net))
        for other in (deep, again):
            assert [type(one) for one in other.modules()] == [
                one.__class__ for one in net.modules()
            ]
            assert are_equal(step(other), expected)
        torch.save(net.features, tmp_path / "features.pt")
        torch.save(net.state_dict(), tmp_path / "state.pt")
    assert m.table["head"].calls == 0  # the copies were not measured
    python("""
        import sys
        sys.modules["wattmeter"] = None
        import torch
        options = {} if torch.__version__ < "2" else {"weights_only": False}
        features = torch.load("features.pt", **options)
        assert [type(one).__name__ for one in features] == ["Conv2d", "ReLU", "MaxPool2d"]
        assert features(torch.zeros(1, 3, 8, 8)).shape == (1, 4, 4, 4)
        assert "head.weight" in torch.load("state.pt")
        """)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_takes_a_model_apart_sees_the_original(net):
    expected = net(X)
    with wattmeter.torch.layers(net) as m:
        assert str(inspect.signature(net.forward)) == "(x, scale=1.0)"
        assert inspect.getsource(type(net).forward).startswith("    def forward")
        scripted = torch.jit.script(net.features)
        traced = torch.jit.trace(net, (X,), check_trace=False)
        graph = torch.fx.symbolic_trace(net.features)
        assert torch.equal(scripted(X), net.features(X))
        assert torch.equal(graph(X), net.features(X))
        assert torch.equal(traced(X), expected)
    assert m.table["features"].calls > 0
    assert torch.equal(scripted(X), net.features(X))
    assert torch.equal(traced(X), expected) and torch.equal(graph(X), scripted(X))


def test_a_scripted_part_is_one_layer(net):
    net.features = torch.jit.script(net.features)
    expected = step(net)
    attributes = dict(vars(net.features))
    with wattmeter.torch.layers(net) as m:
        assert are_equal(step(net), expected)
    assert [row.path for row in m.table] == ["", "features", *LAYERS[5:]]
    row = m.table["features"]
    assert row.calls == 1 and "scripted" in row.note and row.is_leaf
    assert vars(net.features) == attributes
    assert are_equal(step(net), expected)


def test_a_forward_of_its_own_is_measured_as_one(net):
    plain = net.head.forward
    net.head.forward = lambda x: plain(x) * 2
    own = net.head.forward
    with wattmeter.torch.layers(net) as m:
        step(net)
    assert m.table["head"].calls == 1 and "of its own" in m.table["head"].note
    assert m.table["head"].backward.value > 0
    assert net.head.forward is own


def test_shared_and_repeated_layers():
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    with wattmeter.torch.layers(model) as m:
        step(model, torch.ones(2, 4))
    row = m.table["2"]
    assert row.path == "0" and row.also == ["2"] and row.calls == 2
    assert "0, 2" in str(m)
    check_sums(m.table)


def test_tuples_branches_checkpoints_and_two_passes():
    from torch.utils.checkpoint import checkpoint

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, 4)
            self.a = nn.Linear(4, 4)
            self.unused = nn.Linear(4, 4)

        def forward(self, inputs):
            out, (h, _) = self.rnn(inputs["x"])
            return {"y": checkpoint(self.a, out + h, use_reentrant=True), "h": h}

    model, inputs = Odd(), {"x": torch.ones(3, 2, 4, requires_grad=True)}
    with wattmeter.torch.layers(model) as m:
        got = model(inputs)
        loss = got["y"].sum() + got["h"].sum()
        loss.backward(retain_graph=True)
        loss.backward()
        (g,) = torch.autograd.grad(
            model.a(inputs["x"]).pow(2).sum(), inputs["x"], create_graph=True
        )
        g.sum().backward()
    assert m.table["a"].calls >= 2 and m.table["unused"].calls == 0
    assert m.table["unused"].own.value == 0
    assert m.table["rnn"].backward.value > 0
    check_sums(m.table)


def test_an_exception_in_the_backward_pass_leaves_nothing_open(net):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("on its way")

    class Failing(nn.Module):
        def forward(self, x):
            return Fails.apply(x)

    model = nn.Sequential(nn.Linear(4, 4), Failing(), nn.Linear(4, 4))
    with wattmeter.torch.layers(model) as m:
        with pytest.raises(KeyError):
            model(torch.ones(2, 4)).sum().backward()
        model[2](torch.ones(2, 4))
        time.sleep(0.3)
        for _ in range(20):
            torch.nn.functional.mse_loss(
                model[2](torch.ones(2, 4)), X[0, 0, :2, :4]
            ).backward()
            with wattmeter.region("mine"):
                pass
    assert [row.calls for row in m.table] == [1, 1, 1, 22]
    assert m.report.regions["mine"].calls == 20
    assert m.table["1"].backward.value < 0.3
    check_sums(m.table)


def test_gradients_inside_a_forward():
    class Force(nn.Module):
        def __init__(self):
            super().__init__()
            self.energy = nn.Linear(4, 1)

        def forward(self, x):
            x = x.clone().requires_grad_()
            energy = self.energy(x).pow(2).sum()
            return torch.autograd.grad(energy, x, create_graph=True)[0]

    model = Force()
    with wattmeter.torch.layers(model) as m:
        step(model, torch.ones(2, 4))
        step(model, torch.ones(2, 4))
    assert m.table[""].calls == m.table["energy"].calls == 2
    check_sums(m.table)


def test_a_forward_that_is_replaced_between_two_measurements(net, monkeypatch):
    with wattmeter.torch.layers(net):
        net.head(torch.ones(1, 8))
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x * 100)
    with wattmeter.torch.layers(net):
        assert torch.equal(net.head(torch.ones(1, 8)), torch.full((1, 8), 100.0))


def test_a_copy_of_a_module_with_its_own_forward_has_its_own(net):
    net.head.forward = functools.partial(nn.Linear.forward, net.head)
    with wattmeter.torch.layers(net) as m:
        other = copy.deepcopy(net)
        with torch.no_grad():
            other.head.weight.fill_(0)
            other.head.bias.fill_(7)
        assert torch.equal(other.head(torch.ones(1, 8)), torch.full((1, 2), 7.0))
    assert m.table["head"].calls == 0


def test_leaves_keep_no_hooks():
    class Scale(nn.Module):
        def forward(self, x, by):
            return x * by

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.by = nn.Parameter(torch.ones(1))
            self.scale = Scale()

        def forward(self, x):
            return self.scale(x, self.by)

    model, x = Scaled(), torch.ones(2, requires_grad=True)
    with wattmeter.torch.layers(model) as m:
        for _ in range(5):
            step(model, x)
    assert m.table["scale"].calls == 5
    assert not model.by._backward_hooks and not x._backward_hooks


def test_hooks_of_the_programs_own_are_called_too():
    class Doubles(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            y = self.layer(x)
            self.first = y.register_hook(lambda gradient: 2 * gradient)
            y.register_hook(lambda gradient: 3 * gradient)
            return y

    def gradient():
        model.zero_grad()
        y = model(torch.ones(2, 4))
        model.first.remove()
        y.sum().backward()
        return model.layer.bias.grad.tolist()

    model = Doubles()
    with wattmeter.torch.layers(model) as m:
        assert gradient() == [6.0] * 4
    assert m.table["layer"].backward.value > 0


def test_a_class_that_may_not_be_derived_from():
    class Sealed(nn.Linear):
        def __init_subclass__(cls, *, key):
            raise AssertionError("never")

    model = nn.Sequential(Sealed(2, 2), nn.ReLU())
    with wattmeter.torch.layers(model) as m:
        step(model, torch.ones(1, 2))
        model[1].__class__ = nn.Tanh
    assert m.table["0"].calls == 1 and "forward" not in vars(model[0])
    assert type(model[1]) is nn.Tanh


def test_another_tracker_inside_is_told(net):
    with wattmeter.torch.layers(net) as m:
        with wattmeter.track() as inner:
            net(X)
    assert inner.report.regions["Net"].calls == 1
    assert m.table["head"].calls == 0 and "another tracker" in str(m)


def test_a_measurement_that_has_not_begun(net):
    m = wattmeter.torch.layers(net)
    assert "layers" in repr(m) and m._repr_html_() is None
    for ask in (lambda: m.report, lambda: m.table, lambda: str(m)):
        with pytest.raises(ValueError, match="not been started: with layers"):
            ask()


def test_several_models_at_once_and_one_twice(net):
    other = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    with wattmeter.torch.layers(net) as first:
        with wattmeter.torch.layers(other) as second:
            with pytest.raises(ValueError, match="measured already"):
                wattmeter.torch.layers(net).start()
            with pytest.raises(ValueError, match="measured already"):
                wattmeter.torch.layers(net.head).start()
            with pytest.raises(ValueError, match="shares"):
                wattmeter.torch.layers(nn.Linear(2, 2), interval=1.0).start()
            step(net)
            other(torch.ones(1, 8))
        while first.table["head"].calls == 0:  # as of the last sample
            time.sleep(0.001)
        assert first.table["head"].calls == 1
        step(net)
    assert second.table["0"].calls == 1 and first.table["head"].calls == 2
    with pytest.raises(ValueError, match="started once"):
        first.start()
    with wattmeter.torch.layers(net) as later:
        step(net)
    assert later.table["head"].calls == 1


def test_threads_measure_their_own_stacks(net):
    def work():
        for _ in range(20):
            net(X).sum().backward()

    with wattmeter.torch.layers(net) as m:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(row.calls == 60 for row in m.table)
    check_sums(m.table)


def test_data_parallel_and_distributed(net, tmp_path):
    expected = step(net)
    with wattmeter.torch.layers(net) as m:
        assert are_equal(step(nn.DataParallel(net)), expected)
    assert m.table["head"].calls == 1
    if not torch.distributed.is_available():
        return
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/ranks", rank=0, world_size=1
    )
    try:
        with wattmeter.torch.layers(net) as m:
            parallel = nn.parallel.DistributedDataParallel(net)
            assert are_equal(step(parallel), expected)
        parallel = nn.parallel.DistributedDataParallel(net)
        with wattmeter.torch.layers(parallel) as outer:
            assert are_equal(step(parallel), expected)
    finally:
        torch.distributed.destroy_process_group()
    assert m.table["head"].calls == outer.table["module.head"].calls == 1


def test_what_it_is_written_to(net, tmp_path):
    with wattmeter.torch.layers(net) as m:
        step(net)
    m.table.to_csv(tmp_path / "layers.csv")
    rows = list(csv.DictReader(open(tmp_path / "layers.csv")))
    assert [row["path"] for row in rows] == LAYERS
    assert float(rows[0]["forward_s"]) == pytest.approx(m.table[""].forward.value)
    assert rows[3]["backward_s"] == ""
    read = json.loads(m.table.to_json(tmp_path / "layers.json"))
    assert read == json.load(open(tmp_path / "layers.json"))
    assert read["layers"][0]["type"] == "Net"
    assert read["total"]["time_s"] == m.report.time.value
    lines = str(m).splitlines()
    assert lines[0].split()[:3] == ["calls", "forward", "backward"]
    assert lines[1].endswith("(model)") and any("(total)" in line for line in lines)
    assert "<pre>" in m._repr_html_()


def test_joules_follow_the_sensor(machine):
    counter = machine.add_package()
    process = machine.start("""
        import sys, time, torch, wattmeter.torch

        class Wait(torch.nn.Linear):
            def forward(self, x):
                print("layer", flush=True)
                sys.stdin.readline()
                return super().forward(x)

        model = torch.nn.Sequential(Wait(2, 2), Wait(2, 2))
        with wattmeter.torch.layers(model, interval=0.02) as m, torch.no_grad():
            model(torch.ones(1, 2))
        print([row.energy.value for row in m.table])
        """)
    from machine import set_counter

    joules, taken = 1000.0, []
    for watts in (40, 400):
        assert process.stdout.readline() == "layer\n"
        begun = now = time.monotonic()
        while now < begun + 0.4:
            time.sleep(0.02)
            joules += watts * (time.monotonic() - now)
            now = time.monotonic()
            set_counter(counter, joules)
        taken.append(watts * (now - begun))
        process.stdin.write("\n")
        process.stdin.flush()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    _, first, second = json.loads(out)
    wanted = taken[1] / taken[0]
    assert wanted / 2 < second / first < wanted * 2, (first, second, taken)


# A GPU whose events are passed when they are recorded, and on which all parameters are.
FAKE_CUDA = """
import sys, threading, time, torch, wattmeter.torch
import wattmeter._torch.layers as implementation

class Event:
    made = 0

    def __init__(self, enable_timing):
        assert enable_timing
        Event.made += 1

    def record(self, stream):
        assert stream == "stream of cuda:0" and not is_capturing
        self.when = time.monotonic()

    def query(self):
        assert not is_capturing
        time.sleep(0)  # other threads have their turn
        return time.monotonic() - self.when > 0.001

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1000 * (end.when - self.when)

is_capturing = False
torch.cuda.Event = Event
torch.cuda.is_current_stream_capturing = lambda: is_capturing
torch._C._cuda_getCurrentRawStream = lambda index: 1000 + index
torch.cuda.current_stream = lambda device: f"stream of {device}"
implementation.gpu_of = lambda module: torch.device("cuda", 0)

class Wait(torch.nn.Linear):
    def __init__(self, seconds):
        super().__init__(2, 2)
        self.seconds = seconds

    def forward(self, x):
        time.sleep(self.seconds)
        return super().forward(x)

model = torch.nn.Sequential(Wait(0.01), Wait(0.03))
"""
RUN_ON_CUDA = FAKE_CUDA + """
with wattmeter.torch.layers(model, interval=0.02) as m:
    for _ in range(10):
        model(torch.ones(1, 2)).sum().backward()
    with torch.no_grad():
        model(torch.ones(1, 2))
    time.sleep(0.1)
"""


def test_on_a_gpu_events_tell_how_long_it_worked_and_what_it_took(machine):
    machine.add_gpus({"gpus": [{"power": {"points": [[0, 200]]}}]})
    out = machine.run(RUN_ON_CUDA + """
print([[row.calls, row.gpu_time.value, row.energy.value, row.share] for row in m.table])
print(m.report.gpu_energy.value, m.report.time.value, Event.made)
print(m)
""")
    lines = out.splitlines()
    (_, outer, _, _), (calls, first, joules, _), (_, second, more, _) = json.loads(
        lines[0]
    )
    gpu_joules, seconds, made = map(float, lines[1].split())
    assert calls == 11 and made < 100  # events are used again
    assert 0.11 <= first < second and 0.33 <= second
    assert 0 <= outer < first
    watts = gpu_joules / seconds
    assert joules == pytest.approx(watts * first, rel=0.3)
    assert more == pytest.approx(watts * second, rel=0.3)
    assert "GPU" in lines[2] and "handed to it" in out


def test_of_several_gpus_joules_are_not_told_apart(machine):
    machine.add_gpus({"gpus": [{"count": 2, "power": {"points": [[0, 200]]}}]})
    out = machine.run(RUN_ON_CUDA + """
print([row.energy.why for row in m.table][0])
""")
    assert out == "several GPUs are measured: choose the model's with gpus=\n"


def test_work_in_a_cuda_graph_is_not_timed(machine):
    machine.add_gpus({"gpus": [{"power": {"points": [[0, 200]]}}]})
    out = machine.run(FAKE_CUDA + """
with wattmeter.torch.layers(model, interval=0.02) as m:
    model[0](torch.ones(1, 2))
    is_capturing = True
    model(torch.ones(1, 2)).sum().backward()
    is_capturing = False
for figure in (m.table["0"].gpu_time, m.table["1"].gpu_time):
    print(figure.state, figure.value is None, figure.why)
print(m.table["1"].energy.why)
""")
    why = "its work was captured in a CUDA graph, where events cannot tell"
    assert out.splitlines() == [f"at least False {why}", f"missing True {why}", why]


def test_threads_share_a_gpu(machine):
    machine.add_gpus({"gpus": [{"power": {"points": [[0, 200]]}}]})
    out = machine.run(FAKE_CUDA + """
model = torch.nn.Sequential(Wait(0), Wait(0))
Event.query = lambda self: time.sleep(0) is None
Event.elapsed_time = lambda self, end: 1.0
failed = []
threading.excepthook = failed.append

def work():
    with torch.no_grad():
        for _ in range(300):
            model(torch.ones(1, 2))

sys.setswitchinterval(1e-6)
with wattmeter.torch.layers(model, interval=0.02) as m:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print([round(1000 * m.table[path].gpu_time.value) for path in ("0", "1")], failed)
""")
    assert out == "[1200, 1200] []\n"


def test_without_a_sensor_joules_are_missing_and_never_0(machine):
    out = machine.run(
        """
        import torch, wattmeter.torch
        model = torch.nn.Sequential(torch.nn.Linear(2, 2))
        with wattmeter.torch.layers(model) as m:
            model(torch.ones(1, 2))
        print(m)
        print([row.energy.value for row in m.table], m.table.energy.why)
        """,
        WATTMETER_PROCFS="/nonexistent",
    )
    assert "0 J" not in out


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (None, TypeError, "torch.nn.Module is needed"),
        (torch.tanh, TypeError, "torch.nn.Module is needed"),
        (nn.ReLU(), ValueError, "no parameters"),
        (nn.ModuleList(), ValueError, "no parameters"),
        (nn.ParameterList([nn.Parameter(torch.ones(1))]), ValueError, "no layers"),
    ],
)
def test_wrong_models(model, error, words):
    with pytest.raises(error, match=words):
        wattmeter.torch.layers(model)


def test_layerwise_measurement_tool(net, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def train():
        step(net)

    num_epochs = 2
    tracker = LayerwiseMeasurementTool("test_layerwise_measurement_tool.csv", 0)
    model = tracker.start(net)
    for epoch in range(num_epochs):
        train()
    with torch.no_grad():
        model(X)
    tracker.stop()
    assert model is net
    rows = list(csv.reader(open("test_layerwise_measurement_tool.csv")))
    names = ["Conv2d", "ReLU", "MaxPool2d", "Linear", "Linear", "Linear"]
    assert [row[0] for row in rows] == names
    assert all(len(row) == 2 for row in rows)
    assert all(row[1] == "" or float(row[1]) > 0 for row in rows)
    with pytest.raises(ValueError, match="nothing was started"):
        tracker.stop()
    with pytest.raises(TypeError):
        tracker.start(None)
