"""The detectors for river and scikit-learn, against the real libraries."""

from __future__ import annotations

import copy
import importlib
import pickle
import random
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tocsin
from tocsin import Detector, Independent, InputError, MeanShift, NotFittedError, ReferenceWarning
from tocsin._compute.arrays import Float64Array

pytestmark = pytest.mark.usefixtures("quick_fits")
DOCS = Path(__file__).parents[1] / "docs"


def quick(ert: float = 1000, **options: Any) -> Detector:
    """A detector that is fitted in a moment."""
    given = {"window": 5, "interval": False, "paths": 500, "sampler": Independent(), "seed": 1, **options}
    return Detector(ert, MeanShift(), **given)


def for_errors() -> Detector:
    """The same, for zeros and ones: nothing can be extrapolated from these."""
    return quick(100, window=10, paths=2000)


def shifted(seed: int, quiet: int, changed: int, width: int = 1) -> Float64Array:
    """Normal rows, the last of them with a mean of 2."""
    rows = np.random.default_rng(seed).normal(size=(quiet + changed, width))
    rows[quiet:] += 2
    return rows


@pytest.mark.parametrize(("face", "package"), [("river", "river"), ("sklearn", "scikit-learn")])
def test_a_missing_library_is_named(face: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the import of the face, with what to install."""
    monkeypatch.setitem(sys.modules, face, None)
    monkeypatch.setitem(sys.modules, f"{face}.base", None)
    monkeypatch.delitem(sys.modules, f"tocsin._integrations.{face}", raising=False)
    with pytest.raises(tocsin.MissingExtraError, match=rf"'{package}': pip install 'tocsin\[{face}\]'"):
        importlib.import_module(f"tocsin._integrations.{face}")


@pytest.fixture
def rough_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few streams per fit, for code that is as slow as users see it."""
    fit = Detector.fit

    def rough(self: Detector, *args: Any, **options: Any) -> Detector:
        self.interval, self.paths = False, self.paths or 2000
        return fit(self, *args, **options)

    monkeypatch.setattr(Detector, "fit", rough)


def code_of(page: str, section: str = "") -> str:
    """The code of a page, or of one of its sections, but for that of other libraries."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    return "\n".join(block for block in blocks if "alibi_detect" not in block)


@pytest.mark.usefixtures("rough_fits")
class TestPages:
    """What the pages show runs as it is printed."""

    def test_river(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The change is found where it was made."""
        pytest.importorskip("river", reason="the extra `river` is not installed")
        exec(code_of("integrations.md", "river"), {})
        assert re.match(r"12[01]\d ", capsys.readouterr().out)

    def test_scikit_learn(self) -> None:
        """So it is here."""
        pytest.importorskip("sklearn", reason="the extra `sklearn` is not installed")
        names: dict[str, Any] = {}
        exec(code_of("integrations.md", "scikit-learn"), names)
        assert np.flatnonzero(names["watch"].predict(names["stream"]) == -1)[0] in range(50, 60)

    def test_coming_from_alibi_detect(self) -> None:
        """Our half of it."""
        names: dict[str, Any] = {"x_ref": shifted(0, 1000, 0, 2), "stream": shifted(1, 50, 50, 2)}
        names["batch"] = names["stream"][-20:]
        exec(code_of("coming-from-alibi-detect.md"), names)
        assert names["outcomes"].alarm[50:].any()
        assert names["changed"]


class TestRiver:
    """`tocsin.integrations.river.ChangeDetector`."""

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("river", reason="the extra `river` is not installed")

    @staticmethod
    def face(**options: Any) -> Any:
        from tocsin.integrations.river import ChangeDetector

        return ChangeDetector(**options)

    @staticmethod
    def drifts(face: Any, stream: Any) -> list[int]:
        """Where a drift is detected."""
        found = []
        for i, x in enumerate(stream):
            face.update(x)
            if face.drift_detected:
                found.append(i)
        return found

    def test_a_fitted_detector_rings_as_it_would_alone(self) -> None:
        """Run after run, with its own reference; the one that was given stays as it is."""
        detector = quick().fit(shifted(0, 200, 0))
        stream = shifted(1, 300, 50).ravel()
        face = self.face(detector=detector)
        alone = copy.deepcopy(detector).update_many(stream)
        assert self.drifts(face, stream.tolist()) == np.flatnonzero(alone.alarm).tolist()
        assert face.n_detections == alone.alarm.sum() > 3
        assert detector.time == 0
        assert face.in_use.run >= face.n_detections - 1

    def test_it_learns_from_the_stream(self) -> None:
        """As if fitted to its beginning; and after a drift anew, so that a change that stays rings once."""
        stream = shifted(2, 300, 400).ravel()
        face = self.face(reference=200, detector=quick())
        found = self.drifts(face, stream.tolist())
        alone = quick().fit(stream[:200]).update_many(stream[200:])
        assert found[0] == 200 + np.flatnonzero(alone.alarm)[0]
        assert 300 <= found[0] < 310
        assert len(found) < 4
        assert face.in_use.reference_.mean() == pytest.approx(2, abs=0.3)

    def test_nothing_is_detected_before_the_reference_is_complete(self) -> None:
        """Whatever comes, and there is nothing to look at yet."""
        face = self.face(reference=100, detector=quick())
        assert self.drifts(face, shifted(3, 50, 49).ravel().tolist()) == []
        assert face.outcome is None
        for ask in (lambda: face.in_use, face.explain):
            with pytest.raises(NotFittedError, match="99 of 100"):
                ask()
        face.update(0.5)
        assert face.in_use.time == 0

    def test_dicts_of_any_kind(self) -> None:
        """In any order of features, with gaps; the answers are those of a table."""
        rng = random.Random(4)
        rows = [
            {"size": rng.gauss(0, 1), "kind": rng.choice("abc"), "gap": rng.choice([None, 1.0, 2.0])}
            for _ in range(250)
        ] + [{"size": rng.gauss(0, 1), "kind": "d", "gap": None} for _ in range(30)]
        face = self.face(reference=200, detector=quick())
        turned = [dict(reversed(row.items())) for row in rows[200:]]
        found = self.drifts(face, rows[:200] + turned)
        alone = quick().fit(rows[:200]).update_many(rows[200:])
        assert found[0] == 200 + np.flatnonzero(alone.alarm)[0]
        assert 250 <= found[0] < 260

    def test_bad_observations_change_nothing(self) -> None:
        """While it collects, and after."""
        face = self.face(reference=60, detector=quick())
        rng = random.Random(5)

        def row() -> dict[str, float]:
            return {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}

        for _ in range(80):
            before = pickle.dumps(face)
            for bad in (float("nan"), "word", None, {}, {"a": [1.0]}, [1.0]):
                with pytest.raises(InputError):
                    face.update(bad)
            if face.outcome:
                with pytest.raises(InputError, match="lacks 'b'"):
                    face.update({"a": 1.0})
            assert pickle.dumps(face) == before
            face.update(row())
        for first, second in ((1.0, {"a": 1.0}), ({"a": 1.0}, 1.0)):
            with pytest.raises(InputError, match="of the other kind"):
                self.drifts(self.face(), [first, second])

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"ert": 1}, "ert=1 is too small"),
            ({"ert": 100, "detector": Detector(50)}, "give one of them"),
            ({"detector": "adwin"}, "'adwin' is a str"),
            ({"reference": 0}, "reference=0"),
            ({"reference": None}, "reference=None"),
            ({"reference": 10}, "too small for a window of 8"),
            ({"reference": 300, "detector": Detector(500, window=200)}, "too small for a window of 200"),
            ({"warning": 2}, "warning=2"),
        ],
    )
    def test_bad_options_are_refused_at_once(self, options: dict[str, Any], words: str) -> None:
        """And not after as many observations as the reference needs."""
        with pytest.raises(InputError, match=words):
            self.face(**options)

    def test_a_constant_stream_is_waited_for(self) -> None:
        """Nothing can be measured by it; but its end is found."""
        face = self.face(reference=100, detector=for_errors())
        assert self.drifts(face, [0.0] * 500) == []
        assert self.drifts(face, [1.0] * 10)

    def test_a_refused_reference_is_told_and_replaced(self) -> None:
        """The stream goes on."""
        face = self.face(reference=100, detector=quick())
        self.drifts(face, [0.0, 1.0] * 49 + [0.0])
        with pytest.warns(ReferenceWarning, match=r"as many others are\. ert=1000 is too rare for"):
            face.update(1.0)
        assert self.drifts(face, shifted(6, 100, 0).ravel().tolist()) == []
        assert face.in_use.time == 0

    def test_warnings_are_told_by_rarity(self) -> None:
        """Short of an alarm, where chance would show as much once in warning * ert or more rarely."""
        face = self.face(detector=quick().fit(shifted(0, 200, 0)), warning=0.05)
        seen = set()
        for x in shifted(7, 300, 20).ravel().tolist():
            face.update(x)
            rare = face.outcome.rarity >= 0.05 * 1000
            assert face.warning_detected == (rare and not face.outcome.alarm)
            assert face.drift_detected == face.outcome.alarm
            seen.add((face.warning_detected, face.drift_detected))
        assert seen == {(False, False), (True, False), (False, True)}

    def test_copies_go_on_and_clones_begin_anew(self) -> None:
        """Pickled or copied in the middle, it answers the same; a clone has seen nothing."""
        stream = shifted(8, 300, 50).ravel().tolist()
        for stop in (100, 250):
            face = self.face(reference=200, detector=quick())
            self.drifts(face, stream[:stop])
            twins = pickle.loads(pickle.dumps(face)), copy.deepcopy(face), face.clone(include_attributes=True)
            expected = self.drifts(face, stream[stop:])
            assert expected
            assert all(self.drifts(twin, stream[stop:]) == expected for twin in twins)
            assert self.drifts(face.clone(), stream) == [stop + i for i in expected]

    def test_an_explanation_is_the_detectors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Asked for while the drift is detected; the next update starts anew."""
        monkeypatch.setattr(Detector, "explain", lambda detector: detector.alarm, raising=False)
        face = self.face(detector=quick().fit(shifted(0, 200, 0)))
        for x in shifted(9, 0, 20).ravel().tolist():
            face.update(x)
            if face.drift_detected:
                break
        assert face.explain() == face.outcome
        face.update(0.0)
        assert face.explain() is None

    def test_in_a_pipeline_it_only_watches(self) -> None:
        """Behind a scaler, before a model: predictions are as without it, and a change of the features is found."""
        from river import linear_model, preprocessing

        with_it = preprocessing.StandardScaler() | self.face(reference=100, detector=quick())
        with_it |= linear_model.LogisticRegression()
        without = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        found = []
        for i, row in enumerate(shifted(10, 200, 20, 2).tolist()):
            x = {"a": row[0], "b": row[1]}
            assert with_it.predict_proba_one(x) == without.predict_proba_one(x)
            for model in (with_it, without):
                model.learn_one(x, row[0] > row[1])
            if with_it["ChangeDetector"].drift_detected:
                found.append(i)
        assert found[0] in range(200, 210)

    @staticmethod
    def flipping(count: int, flip: int) -> Iterator[tuple[dict[str, float], bool]]:
        """What is true becomes false."""
        rng = random.Random(11)
        for i in range(count):
            x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)}
            yield x, (x["a"] > 0.2 * x["b"]) ^ (i >= flip)

    @pytest.mark.parametrize("background", [False, True])
    def test_a_model_is_retrained(self, background: bool) -> None:
        """When its errors grow more; with a second model that learns while there is a warning, or without."""
        from river import drift, linear_model

        detector = Detector(100, MeanShift(direction=[1.0]), window=10, interval=False, paths=2000, seed=1)
        face = self.face(reference=200, detector=detector)
        model = drift.DriftRetrainingClassifier(linear_model.LogisticRegression(), face, background)
        right = [(model.predict_one(x) == y, model.learn_one(x, y))[0] for x, y in self.flipping(1000, 600)]
        assert face.n_detections >= 1
        assert np.mean(right[600:620]) < 0.5 < 0.9 < np.mean(right[-100:])

    @pytest.mark.filterwarnings("ignore::tocsin.ReferenceWarning")
    def test_a_forest_takes_it(self) -> None:
        """For drifts and for warnings; each tree has a clone of its own."""
        from river import forest

        face = self.face(reference=150, detector=for_errors())
        model = forest.ARFClassifier(n_models=2, seed=1, drift_detector=face, warning_detector=face)
        for x, y in self.flipping(500, 300):
            model.learn_one(x, y)
        assert model.n_drifts_detected() >= 1

    @pytest.mark.filterwarnings("ignore::tocsin.ReferenceWarning")
    def test_rivers_checks_of_estimators(self) -> None:
        """All of them pass."""
        random.seed(0)  # the checks draw from it
        from river import checks

        from tocsin.integrations.river import ChangeDetector

        (options,) = ChangeDetector._unit_test_params()
        checks.check_estimator(ChangeDetector(**options))


class TestScikitLearn:
    """`tocsin.integrations.sklearn.ChangeDetector`."""

    EXPECTED = dict.fromkeys(
        ["check_methods_sample_order_invariance", "check_methods_subset_invariance"],
        "rows are a stream: each is judged together with those before it",
    )

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("sklearn", reason="the extra `sklearn` is not installed")

    @staticmethod
    def face(**options: Any) -> Any:
        from tocsin.integrations.sklearn import ChangeDetector

        return ChangeDetector(**options)

    @pytest.mark.filterwarnings("ignore::tocsin.ReferenceWarning")
    def test_its_own_checks(self) -> None:
        """All that scikit-learn asks of an outlier detector, but that it forget the order of its rows."""
        from sklearn.utils import estimator_checks

        face = self.face(detector=quick(window=2, paths=200))
        results = estimator_checks.check_estimator(face, expected_failed_checks=self.EXPECTED, on_skip=None)
        assert {result["check_name"] for result in results if result["status"] == "xfail"} == self.EXPECTED.keys()
        estimator_checks.check_dataframe_column_names_consistency("ChangeDetector", face)

    def test_predict_is_a_run_of_the_detector(self) -> None:
        """From a fresh start: the same rows give the same answer."""
        reference, stream = shifted(0, 200, 0, 2), shifted(1, 100, 50, 2)
        face = self.face(detector=quick()).fit(reference)
        alone = quick().fit(reference).update_many(stream)
        for _ in range(2):
            np.testing.assert_array_equal(face.predict(stream), np.where(alone.alarm, -1, 1))
            np.testing.assert_array_equal(face.decision_function(stream), alone.threshold - alone.statistic)
        assert face.detector_.time == 0
        assert alone.alarm.sum() > 3

    def test_before_the_first_test_there_is_no_score(self) -> None:
        """A cold detector waits for a full window; rows before it do not ring."""
        face = self.face(detector=quick(start="cold")).fit(shifted(0, 200, 0))
        stream = shifted(1, 20, 20)
        scores = face.decision_function(stream)
        assert np.isnan(scores[:4]).all()
        assert np.isfinite(scores[4:20]).all()
        np.testing.assert_array_equal(face.predict(stream) == -1, scores < 0)
        np.testing.assert_array_equal(face.score_samples(stream) - face.offset_, scores)

    def test_in_a_pipeline(self) -> None:
        """Behind a scaler; clones and parameters work as usual."""
        from sklearn.base import clone, is_outlier_detector
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        scale = np.array([1.0, 1000.0])
        reference, stream = shifted(0, 200, 0, 2), shifted(1, 100, 50, 2)
        pipeline = make_pipeline(StandardScaler(), self.face(detector=quick())).fit(reference * scale)
        found = pipeline.predict(stream * scale)
        assert np.flatnonzero(found == -1)[0] in range(100, 110)
        again = clone(pipeline).fit(reference * scale)
        np.testing.assert_array_equal(again.predict(stream * scale), found)
        assert is_outlier_detector(pipeline)
        again.set_params(changedetector__detector=None, changedetector__ert=77, changedetector__seed=3)
        assert clone(again)[-1].get_params() == {"detector": None, "ert": 77, "seed": 3}

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_go_to_the_detector(self, library: str) -> None:
        """With columns of any kind, and gaps."""
        frames = pytest.importorskip(library)
        rng = random.Random(2)

        def frame(count: int, kinds: str) -> Any:
            rows = [(rng.gauss(0, 1), rng.choice(kinds), rng.choice([None, 1.0])) for _ in range(count)]
            return frames.DataFrame(dict(zip(("size", "kind", "gap"), map(list, zip(*rows, strict=True)), strict=True)))

        reference, same, other = frame(200, "ab"), frame(50, "ab"), frame(20, "c")
        face = self.face(detector=quick(seed=None), seed=7).fit(reference)
        assert face.feature_names_in_.tolist() == ["size", "kind", "gap"]
        alone = quick(seed=7).fit(reference)
        np.testing.assert_array_equal(face.predict(same) == -1, alone.update_many(same).alarm)
        assert (face.predict(other)[:10] == -1).any()

    def test_groups_reach_the_fit(self) -> None:
        """A label per row, as `Detector.fit` takes them."""
        with pytest.raises(InputError, match=r"groups has shape \(3,\)"):
            self.face(detector=quick()).fit(shifted(0, 200, 0), groups=[1, 2, 3])
        self.face(detector=quick()).fit(shifted(0, 200, 0), groups=np.arange(200) // 100)

    def test_errors(self) -> None:
        """Options are looked at in `fit`, as scikit-learn wants it."""
        from sklearn.exceptions import NotFittedError as NotFitted

        with pytest.raises(NotFitted):
            self.face().predict([[0.0]])
        for options, words in (({"ert": 9, "detector": quick()}, "give one of them"), ({"detector": 5}, "is a int")):
            with pytest.raises(InputError, match=words):
                self.face(**options).fit(shifted(0, 200, 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReferenceWarning)
            assert self.face(ert=20, seed=1).fit(shifted(0, 100, 0)).detector_.seed_ == 1

    def test_a_detector_can_be_cloned(self) -> None:
        """Its options are those of the constructor; a clone is not fitted."""
        from sklearn.base import clone

        detector = quick().fit(shifted(0, 200, 0))
        assert clone(detector).get_params() == detector.get_params()
        with pytest.raises(NotFittedError):
            clone(detector).update(0.0)
        assert self.face(detector=detector).set_params(detector__ert=77).detector.ert == 77
        with pytest.raises(InputError, match="no option 'erd'"):
            detector.set_params(erd=1)
