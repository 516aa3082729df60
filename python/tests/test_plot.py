# SPDX-License-Identifier: Apache-2.0
"""plot() and live.animate(): figures and films of recordings."""

import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree

import pytest

import wattmeter
import wattmeter.live
from machine import BUILD

pytestmark = pytest.mark.skipif(
    not (BUILD / "wattmeter-plot.so").exists(), reason="built without cairo and pango"
)
needs_ffmpeg = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="there is no ffmpeg")


@pytest.fixture
def tree(data):
    return data / "recordings" / "v1-tree.sqlite"


def plain(svg):
    """Without the numbers that cairo gives surfaces, which go on in a process."""
    return re.sub('id="surface[0-9]+"', "", svg)


def size_of(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def test_a_picture(tree, tmp_path):
    picture = wattmeter.plot(tree, channels=["power"], size=(800, 400))
    root = xml.etree.ElementTree.fromstring(picture.svg)
    assert root.get("width") == "800px"
    assert size_of(picture.png()) == (800, 400)
    assert size_of(picture.png(dpi=48)) == (400, 200)
    assert picture.pdf().startswith(b"%PDF")
    assert picture._repr_svg_() == picture.svg
    assert size_of(picture._repr_png_()) == (800, 400)
    assert repr(picture) == f"<Picture of {tree}>"

    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == picture.svg
    picture.save(tmp_path / "a.png", dpi=192)
    assert size_of((tmp_path / "a.png").read_bytes()) == (1600, 800)
    with pytest.raises(wattmeter.ExistsError, match="overwrite=True replaces it"):
        picture.save(tmp_path / "a.svg")
    picture.save(tmp_path / "a.svg", overwrite=True)
    with pytest.raises(TypeError, match="no such option"):
        wattmeter._core.plot([(None, tree, None)], None, {"colour": "red"})
    with pytest.raises(ValueError, match="one of .svg, .png, .pdf"):
        picture.save(tmp_path / "a.mp4")


def test_it_is_that_of_the_command(tree, build):
    arguments = [build / "wattmeter", "plot", tree, "-o", "-", "--format", "svg"]
    for words, keywords in [
        ([], {}),
        (["--channels", "power,gpu0"], {"channels": ["power", "gpu0"]}),
        (["--layout", "power,memory/utilization"], {"layout": "power,memory/utilization"}),
        (["--from", "0.3", "--to", "0.8"], {"start": 0.3, "end": "0.8"}),
        (["--title", "T", "--no-regions"], {"title": "T", "regions": False}),
        (["--fit"], {"fit": True}),
        (["--size", "column", "--no-legend", "--no-title"],
         {"size": "column", "legend": False, "title": ""}),
        (["--font", ",8", "--style", "dark"], {"font": ",8", "style": "dark"}),
        (["--kind", "flame", "--by", "time"], {"kind": "flame", "by": "time"}),
    ]:
        done = subprocess.run([*arguments, *words], capture_output=True, check=True)
        assert plain(wattmeter.plot(tree, **keywords).svg) == plain(done.stdout.decode())


def test_several_recordings(tree, data):
    other = data / "recordings" / "v2-tree.csv"
    for recordings in (
        {"before": tree, "after": str(other)},
        [tree, other],
        [wattmeter.read(tree), os.fsencode(other)],
    ):
        svg = plain(wattmeter.plot(recordings, kind="energy").svg)
        assert svg != plain(wattmeter.plot(tree, kind="energy").svg)
    several = data / "recordings" / "v1-three-runs.sqlite"
    first = plain(wattmeter.plot(several, run=0).svg)
    assert first == plain(wattmeter.plot(wattmeter.read(several, run=0)).svg)
    assert first != plain(wattmeter.plot(several).svg)


def test_what_cannot_be_drawn(tree, data):
    for error, words, arguments, keywords in [
        (wattmeter.Error, "No such file", ["nowhere.sqlite"], {}),
        (ValueError, "no channel 'gpu7'; choose (.|\n)*gpu0_energy_J", [tree],
         {"channels": ["gpu7"]}),
        (ValueError, "no channel 'coffee'; choose", [tree], {"layout": "coffee"}),
        (ValueError, "'pie' is no kind of figure", [tree], {"kind": "pie"}),
        (ValueError, "not before --to", [tree], {"start": 2, "end": 1}),
        (ValueError, "there is no recording", [[]], {}),
        (ValueError, "--by: is for --kind regions or flame", [tree], {"by": "time"}),
        (ValueError, "only --kind time takes", [tree], {"kind": "regions", "fit": True}),
        (ValueError, "'infx7' is no size", [tree], {"size": (float("inf"), 7)}),
        (ValueError, "'900x-7' is no size", [tree], {"size": (900, -7)}),
        (TypeError, "a list, not one text", [tree], {"channels": "power"}),
        (TypeError, "", [7], {}),
        (wattmeter.Error, "no regions", [data / "recordings" / "v1-load.aipm"],
         {"kind": "regions"}),
    ]:
        with pytest.raises(error, match=words):
            wattmeter.plot(*arguments, **keywords)


def test_without_cairo(machine, tree, build):
    """One line that names the packages."""
    folder = machine.folder / "package"
    shutil.copytree(build / "python" / "wattmeter", folder / "wattmeter")
    shutil.copy(build / "libwattmeter.so.0", folder)
    (folder / "wattmeter-plot.so").write_text("no library")
    program = """
        import sys, wattmeter
        try:
            wattmeter.plot(sys.argv[1])
        except wattmeter.Error as error:
            print(error.status, error)
        """
    said = machine.run(program, str(tree), PYTHONPATH=str(folder), LD_LIBRARY_PATH=str(folder))
    assert said.startswith("ENODEV figures need cairo and pango: apt install libcairo2 lib")
    assert len(said.splitlines()) == 1, said


@needs_ffmpeg
def test_a_film(tree, tmp_path):
    told = []
    target = tmp_path / "a.mp4"
    wattmeter.live.animate(
        tree,
        target,
        fps=10,
        dpi=96,
        size=(480, 360),
        channels=["power"],
        progress=lambda *numbers: told.append(numbers),
    )
    assert target.read_bytes()[4:8] == b"ftyp"
    done, total = told[-1]
    assert done == total > 1 and told == sorted(told)
    with pytest.raises(wattmeter.Error, match="there is a file already"):
        wattmeter.live.animate(tree, target, channels=["power"])
    wattmeter.live.animate(tree, tmp_path / "a.gif", fps=5, layout="power")
    assert (tmp_path / "a.gif").read_bytes().startswith(b"GIF8")


@needs_ffmpeg
def test_a_film_that_is_stopped(tree, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wattmeter.live.animate(tree, tmp_path / "a.mp4", progress=stop)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_filmed(tree, tmp_path, monkeypatch):
    for error, words, keywords in [
        (ValueError, "fps must be a number above 0", {"fps": 0}),
        (ValueError, "--fps: 1 to 240", {"fps": 1000}),
        (ValueError, "speed must be a number above 0", {"speed": -1}),
        (ValueError, "dpi must be a number above 0", {"dpi": float("nan")}),
        (ValueError, "finite", {"window": float("inf")}),
        (ValueError, "'nanx7' is no size", {"size": (float("nan"), 7)}),
        (TypeError, "a list, not one text", {"channels": "power"}),
    ]:
        with pytest.raises(error, match=words):
            wattmeter.live.animate(tree, tmp_path / "a.mp4", **keywords)
    with pytest.raises(ValueError, match="one of .mp4, .gif"):
        wattmeter.live.animate(tree, tmp_path / "a.svg")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(wattmeter.Error, match="needs ffmpeg: apt install ffmpeg") as caught:
        wattmeter.live.animate(tree, tmp_path / "a.mp4")
    assert caught.value.status == "ENODEV"
    assert not list(tmp_path.iterdir())


def test_notebook(machine, tree, tmp_path, monkeypatch):
    """A real kernel shows the picture that is the last line of a cell."""
    client_of = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    kernel, client = client_of.start_new_kernel(
        env={**os.environ, **machine.variables, "IPYTHONDIR": str(tmp_path)},
    )
    shown = []

    def take(message):
        assert message["header"]["msg_type"] != "error", message["content"]
        if message["header"]["msg_type"] == "execute_result":
            shown.append(message["content"]["data"])

    try:
        code = f"import wattmeter\nwattmeter.plot({str(tree)!r})"
        client.execute_interactive(code, timeout=300, output_hook=take)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert shown[0]["image/svg+xml"].startswith("<?xml") and shown[0]["image/png"]
