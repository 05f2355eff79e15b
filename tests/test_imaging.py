"""The imaging experiment: what is read, what is learned, and that no picture is used twice."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import Detector
from tocsin._common.errors import InputError, MissingExtraError
from tocsin._experiments import autoencoder, imaging, laboratory, pictures
from tocsin._experiments.base import Options
from tocsin._experiments.pictures import UInt8Array
from tocsin._state.outcomes import Outcomes

pytest.importorskip("torch", reason="needs torch: pip install 'tocsin[imaging]'")
Image = pytest.importorskip("PIL.Image", reason="needs pillow: pip install 'tocsin[imaging]'")

SIZES = imaging.Sizes(
    training=40, epochs=1, reference=150, pool=260, pool_after=60, window=5, ert=30, paths=400, runs=6
)
BEFORE, AFTER = SIZES.training + SIZES.reference + SIZES.pool, SIZES.pool_after


@pytest.fixture
def breakhis() -> Path:
    """The folder of real data, where there is one."""
    folder = Path(os.environ.get("TOCSIN_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "histology_breakhis400").is_dir():
        pytest.skip("no real data: set TOCSIN_DATA to a folder with histology_breakhis400")
    return folder


def blobs(rng: np.random.Generator, count: int, side: int) -> UInt8Array:
    """Pictures with structure to learn: one colour each, brighter to one side."""
    colour = rng.integers(50, 200, (count, 1, 1, 3))
    slope = rng.integers(-40, 40, (count, 1, 1, 1)) * np.linspace(-1, 1, side)[:, None, None]
    return np.clip(colour + slope + np.zeros((side, side, 1)), 0, 255).astype(np.uint8)


def write_camelyon(folder: Path, rows: list[tuple[str, int, int]], side: int = 96) -> None:
    """A copy of Camelyon17-WILDS in small, from (patient, centre, split); the red of picture i is i modulo 256."""
    lines = [",patient,node,x_coord,y_coord,tumor,slide,center,split"]
    for i, (patient, centre, split) in enumerate(rows):
        slide = f"patient_{patient}_node_1"
        lines.append(f"{i},{patient},1,{i * 10},7,0,0,{centre},{split}")
        (folder / "patches" / slide).mkdir(parents=True, exist_ok=True)
        pixels = np.full((side, side, 3), [i % 256, 100, 200], dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "patches" / slide / f"patch_{slide}_x_{i * 10}_y_7.png")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")


# The autoencoder


@pytest.mark.parametrize(("side", "sides"), [(32, [16, 8, 4, 2, 1]), (96, [48, 24, 12, 4, 1])])
def test_five_convolutions_lead_to_32_numbers_and_back(side: int, sides: list[int]) -> None:
    network = autoencoder.build(side, seed=0)
    signal = autoencoder.load_torch().zeros(2, 3, side, side)
    shapes = []
    for layer in network.encoder:
        signal = layer(signal)
        if hasattr(layer, "weight"):
            shapes.append(tuple(signal.shape[1:]))
    assert shapes == [(channels, s, s) for channels, s in zip((8, 12, 16, 24, 32), sides, strict=True)]
    assert tuple(network.decoder(signal).shape) == (2, 3, side, side)
    assert network.encode(np.zeros((2, side, side, 3), np.uint8)).shape == (2, 32)


@pytest.mark.parametrize("side", [1, 7, 32, 60, 96, 224])
def test_strides_multiply_to_the_side(side: int) -> None:
    strides = autoencoder.strides(side)
    assert len(strides) == 5
    assert np.prod(strides) == side


def test_the_same_seed_learns_the_same_and_another_does_not() -> None:
    seen = blobs(np.random.default_rng(0), 64, 32)

    def learned(seed: int) -> UInt8Array:
        network = autoencoder.build(32, seed)
        network.fit(seen, epochs=1, rng=np.random.default_rng(seed))
        return network.encode(seen).view(np.uint8)

    assert np.array_equal(learned(1), learned(1))
    assert not np.array_equal(learned(1), learned(2))


def test_training_reduces_the_loss_and_leaves_the_global_generator_alone() -> None:
    torch = autoencoder.load_torch()
    before = torch.random.get_rng_state()
    rng = np.random.default_rng(0)
    seen = blobs(rng, 320, 32)
    network = autoencoder.build(32, seed=0)
    first = network.fit(seen, epochs=1, rng=rng)
    assert network.fit(seen, epochs=14, rng=rng) < first / 5
    assert torch.equal(torch.random.get_rng_state(), before)


# Pictures


@pytest.mark.parametrize("above", [False, True])
def test_camelyon_is_split_by_hospital(tmp_path: Path, above: bool) -> None:
    """Each centre has both splits in the file; 1 is WILDS' own validation hospital, and not used."""
    root = tmp_path / "camelyon17_v1.0"
    centres = [("004", 0), ("020", 1), ("042", 2), ("066", 3), ("099", 4)]
    write_camelyon(root, [(patient, centre, split) for patient, centre in centres for split in (0, 1)])
    collection = pictures.find(tmp_path if above else root)
    assert collection.name == pictures.CAMELYON
    before, after = collection.read()
    assert before[np.arange(len(before))][:, 0, 0, 0].tolist() == [0, 6, 8]
    assert after[np.arange(len(after))][:, 0, 0, 0].tolist() == [4, 5]
    assert before[np.array([1])].shape == (1, 96, 96, 3)
    assert before[np.array([1])][0, 50, 60].tolist() == [6, 100, 200]


def test_a_picture_that_is_missing_is_named(tmp_path: Path) -> None:
    write_camelyon(tmp_path, [("004", 0, 0)])
    next(tmp_path.rglob("*.png")).unlink()
    before, _ = pictures.find(tmp_path).read()
    with pytest.raises(InputError, match=r"patch_patient_004_node_1_x_0_y_7\.png.*complete"):
        before[np.array([0])]


def test_breakhis_is_split_by_stain(breakhis: Path) -> None:
    before, after = pictures.find(breakhis).read()
    assert (len(before), len(after)) == (32_340, 15_064)
    samples = [source[np.arange(0, len(source), 20)].mean((0, 1, 2)) for source in (before, after)]
    assert samples[0].mean() > samples[1].mean()  # pale is brighter
    first = before[np.array([0, 1])].astype(float)
    across = np.abs(first[0, :, -1] - first[1, :, 0]).mean()
    assert across < np.abs(first[0, :, -1] - first[1, :, 16]).mean()  # neighbours on the sheet: rows and columns right


def test_without_a_folder_the_error_says_what_to_give() -> None:
    with pytest.raises(InputError, match=r"give data=\.\.\..*Camelyon17-WILDS.*wilds\.stanford\.edu.*BreaKHis"):
        imaging.IMAGING.measure(Options(), lambda what, units: [])


def test_a_wrong_folder_is_named_and_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{tmp_path.name}' holds no pictures.*metadata\.csv.*breakhis400_32\.npz"):
        imaging.IMAGING.measure(Options(data=tmp_path), lambda what, units: [])
    (tmp_path / "patches").mkdir()
    (tmp_path / "metadata.csv").write_text("patient,node\n004,1\n")
    with pytest.raises(InputError, match="no column x_coord, y_coord, center, split"):
        imaging.IMAGING.measure(Options(data=tmp_path), lambda what, units: [])


def test_a_copy_with_too_few_pictures_is_refused(tmp_path: Path) -> None:
    write_camelyon(tmp_path, [("004", 0, 0), ("042", 2, 0)])
    with pytest.raises(InputError, match="1 pictures from before the change and 1 from after it, and 130000 and 10000"):
        imaging.IMAGING.measure(Options(data=tmp_path), lambda what, units: [])


def test_without_pytorch_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_camelyon(tmp_path, [("004", 0, 0)])
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'torch': pip install 'tocsin\[imaging\]'"):
        imaging.IMAGING.measure(Options(data=tmp_path), lambda what, units: [])


def test_without_pillow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_camelyon(tmp_path, [("004", 0, 0)])
    before, _ = pictures.find(tmp_path).read()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"needs the package 'pillow': pip install 'tocsin\[imaging\]'"):
        before[np.array([0])]


# The experiment


def test_training_reference_and_streams_share_no_picture() -> None:
    parts = imaging.split(BEFORE + 50, SIZES, np.random.default_rng(0))
    assert [len(part) for part in parts] == [SIZES.training, SIZES.reference, SIZES.pool]
    assert len(np.unique(np.concatenate(parts))) == BEFORE


class Recorder(Detector):
    """Keeps what it was shown, run by run."""

    def fit(self, reference: Any, **options: Any) -> Recorder:
        self.seen: list[list[float]] = []
        return super().fit(reference, **options)

    def reset(self, *, baseline: bool = False) -> None:
        super().reset()
        self.seen.append([])

    def update_many(self, block: Any) -> Outcomes:
        self.seen[-1] += block[:, 0].tolist()
        return super().update_many(block)


def test_run_lengths_count_tests_and_no_run_meets_a_point_twice() -> None:
    rng = np.random.default_rng(0)
    reference, pool = rng.normal(size=(200, 1)), rng.normal(size=(2000, 1))
    detector = Recorder(200, window=4, start="cold", paths=400, seed=0).fit(reference)
    lengths, rang = imaging.run_lengths(detector, pool, 20, rng)
    assert lengths.max() > imaging.PIECE
    for length, alarm, seen in zip(lengths, rang, list(detector.seen), strict=True):
        assert len(set(seen)) == len(seen)
        detector.reset()
        alarms = [detector.update([x]).alarm for x in seen[: length + 3]]  # the fourth observation makes the first test
        assert alarm
        assert alarms.index(True) == len(alarms) - 1


def test_delays_count_from_the_change_with_full_windows_that_were_quiet() -> None:
    rng = np.random.default_rng(0)
    reference, pool = rng.normal(size=(200, 1)), rng.normal(size=(400, 1))
    detector = Recorder(200, window=4, start="cold", paths=400, seed=0).fit(reference)
    delays, noticed = imaging.run_delays(detector, pool, rng.normal(9, 0.1, (50, 1)), 20, rng)
    assert noticed.all()
    assert delays.min() >= 1
    assert delays.max() <= 4
    for seen in detector.seen:
        assert max(seen[:4]) < 5
        assert min(seen[4:], default=9) > 5


def test_a_pool_that_runs_out_is_told_from_an_alarm() -> None:
    reference = np.random.default_rng(0).normal(size=(200, 1))
    detector = Detector(1000, window=4, start="cold", paths=400, seed=0).fit(reference)
    lengths, rang = imaging.run_lengths(detector, reference[:10], 3, np.random.default_rng(0))
    assert lengths.tolist() == [7, 7, 7]
    assert not rang.any()


def test_the_key_knows_the_data_and_not_their_place() -> None:
    unit = imaging.Configuration("/here", pictures.BREAKHIS, "abc", SIZES, number=0, seed=0)
    assert replace(unit, folder="/there").key == unit.key
    others = [{"digest": "abd"}, {"number": 1}, {"seed": 1}, {"sizes": replace(SIZES, epochs=2)}]
    assert len({unit.key, *(replace(unit, **other).key for other in others)}) == 5  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::tocsin.ReferenceWarning")
def test_from_pictures_to_figure_and_resumed_after_a_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    write_camelyon(data, [("004", 0, 0)] * BEFORE + [("042", 2, 0)] * AFTER, side=8)
    monkeypatch.setitem(imaging.FULL, pictures.CAMELYON, (2, SIZES))
    place = laboratory.Laboratory(tmp_path / "results", workers=1, progress=False)
    tables = place.run(imaging.IMAGING, Options(data=data))
    assert [row["detector"] for row in tables["imaging"]] == [imaging.PAPER, imaging.OURS] * 2
    assert set(tables) == set(imaging.IMAGING.tables)

    moved = data.rename(tmp_path / "moved")
    monkeypatch.setattr(imaging.Configuration, "run", lambda self: pytest.fail("done already"))
    assert place.run(imaging.IMAGING, Options(data=moved)) == tables

    text = place.draw("imaging", imaging.IMAGING)
    assert "Camelyon17-WILDS, as in the paper" in text
    assert (tmp_path / "results" / "imaging.png").stat().st_size > 10_000


def test_a_stand_in_is_called_one(tmp_path: Path) -> None:
    results = {
        f"{name} {what}": np.arange(1, 7)
        for name in (imaging.PAPER, imaging.OURS)
        for what in ("lengths", "delays", "windows")
    }
    results |= {
        f"{name} {what}": np.ones(6, bool) for name in (imaging.PAPER, imaging.OURS) for what in ("rang", "noticed")
    }
    results["loss"] = np.array(0.01)
    unit = imaging.Configuration("", pictures.BREAKHIS, "", SIZES, 0, 0)
    rows = [
        imaging._row(replace(unit, number=i), name, results) for i in (0, 1) for name in (imaging.PAPER, imaging.OURS)
    ]
    quantiles = [row for name in (imaging.PAPER, imaging.OURS) for row in imaging._quantiles(name, 30, [results])]
    text = imaging.IMAGING.draw({"imaging": rows, "imaging-quantiles": quantiles}, tmp_path)
    assert "not the paper's data" in text
    assert "Spanhol" in text
    assert "CC BY 4.0" in text
