"""Models of other libraries as representations: scikit-learn, PyTorch and ONNX."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from representing import IMAGES, ROWS, kept_in_a_file, notes
from tocsin import Detector
from tocsin._common.errors import InputError, MissingExtraError, NotFittedError
from tocsin._compute.arrays import Float64Array
from tocsin._data.representations import adapt
from tocsin.representations import ONNX

# scikit-learn


def test_a_transformer_to_be_fitted() -> None:
    """The user's own stays as it was."""
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    scaler = preprocessing.StandardScaler()
    represent = adapt(scaler)
    assert represent.needs_fitting
    with pytest.raises(NotFittedError, match="has not learned"):
        represent(ROWS)
    fitted = represent.fit(3 * ROWS + 1)
    assert not fitted.needs_fitting
    assert not fitted.storable
    assert represent.needs_fitting
    assert not hasattr(scaler, "mean_")
    np.testing.assert_allclose(fitted(3 * ROWS + 1).std(0), 1)
    assert repr(fitted) == "<Representation: StandardScaler, rows of 5>"


def test_which_transformers_need_fitting() -> None:
    """Also where a pipeline's last step has nothing to learn, and those before it do."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    stateless, fitted = preprocessing.FunctionTransformer(), preprocessing.StandardScaler().fit(ROWS)
    fresh = preprocessing.StandardScaler()
    join, union = pipeline.make_pipeline, pipeline.make_union
    for ready in (stateless, fitted, join(fitted, stateless), join("passthrough", stateless), union(stateless)):
        assert not adapt(ready).needs_fitting, ready
        assert len(adapt(ready)(ROWS)) == 60
    for unready in (fresh, join(fresh, stateless), join(stateless, join(fresh, stateless)), union(fitted, fresh)):
        assert adapt(unready).needs_fitting, unready
        assert len(adapt(unready).fit(ROWS)(ROWS)) == 60
    assert adapt(join(fresh, stateless)).describe() == "Pipeline of StandardScaler, FunctionTransformer"


def test_texts_through_a_vectoriser() -> None:
    """Sparse rows become dense ones; seeds that are not set come from the fit."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    text = pytest.importorskip("sklearn.feature_extraction.text")
    decomposition = pytest.importorskip("sklearn.decomposition")
    texts = [f"a{i % 5} b{i % 7} c{i % 3}" for i in range(60)]
    counts = adapt(text.CountVectorizer(token_pattern=r"\w+")).fit(texts)(texts)
    assert counts.shape == (60, 15)
    assert np.all(counts.sum(1) == 3)
    chain = pipeline.make_pipeline(text.TfidfVectorizer(), decomposition.TruncatedSVD(3))
    first, again = (adapt(chain).fit(texts, seed=2**40 + 5)(texts) for _ in range(2))
    assert np.array_equal(first, again)
    assert chain[-1].random_state is None


def test_anything_with_fit_and_transform() -> None:
    """It need not come from scikit-learn."""

    class Centre:
        def __init__(self) -> None:
            self.steps = 3

        def fit(self, batch: Float64Array) -> Centre:
            self.mean_ = batch.mean(0)
            return self

        def transform(self, batch: Float64Array) -> Float64Array:
            return np.asarray(batch - self.mean_)

    own = Centre()
    fitted = adapt(own).fit(ROWS + 3)
    assert not hasattr(own, "mean_")
    np.testing.assert_allclose(fitted(ROWS + 3), ROWS - ROWS.mean(0))
    assert not adapt(own.fit(ROWS)).needs_fitting


def test_a_transformer_that_cannot_be_fitted() -> None:
    """Its own error, with a note."""
    lda = pytest.importorskip("sklearn.discriminant_analysis").LinearDiscriminantAnalysis()
    with pytest.raises(TypeError) as caught:
        adapt(lda).fit(ROWS)
    assert "Raised while fitting the preprocess step: LinearDiscriminantAnalysis." in notes(caught.value)


def test_outputs_of_a_model() -> None:
    """A method of a model is a function."""
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression().fit(ROWS, ROWS[:, 0] > 0)
    represent = adapt(model.predict_proba)
    np.testing.assert_allclose(represent(ROWS).sum(1), 1)
    assert "LogisticRegression.predict_proba" in represent.describe()
    with pytest.raises(InputError, match=r"preprocess=model\.predict_proba"):
        adapt(model)


# PyTorch


def test_a_module() -> None:
    """In evaluation, without gradients, in batches, where its parameters are; and left as it was."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5)).double()
    module[1].eval()
    represent = adapt(module, batch_size=7)
    rows = represent(ROWS)
    with torch.no_grad():
        np.testing.assert_allclose(rows, copy.deepcopy(module).eval()(torch.tensor(ROWS)).numpy())
    assert [part.training for part in module.modules()] == [True, True, False, True]
    assert rows.dtype == np.float64
    assert np.array_equal(represent(torch.tensor(ROWS)), rows)
    assert represent.describe() == "the PyTorch module Sequential"
    ROWS.flags.writeable = False
    assert np.array_equal(represent(ROWS), rows)
    ROWS.flags.writeable = True


def test_modules_and_types_of_numbers() -> None:
    """Pictures of bytes become what the parameters are; whole numbers in a tensor stay, since they may be words."""
    torch = pytest.importorskip("torch")
    pictures = np.random.default_rng(1).integers(0, 256, (9, 3, 4, 4), dtype=np.uint8)
    flatten = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 4, dtype=torch.bfloat16), torch.nn.Flatten())
    assert adapt(flatten)(pictures).shape == (9, 2)
    assert adapt(flatten)(list(pictures)).shape == (9, 2)
    words = torch.nn.Sequential(torch.nn.EmbeddingBag(10, 4), torch.nn.Tanh())
    assert adapt(words)(torch.tensor([[1, 2], [3, 4]])).shape == (2, 4)
    assert adapt(torch.nn.Flatten())(list(torch.tensor(IMAGES))).shape == (60, 42)
    with pytest.raises(InputError, match="Flatten"):
        adapt(torch.nn.Identity())(IMAGES)
    with pytest.raises(InputError, match="gave a tuple"):
        adapt(torch.nn.LSTM(5, 2))(ROWS)


def test_a_function_that_gives_tensors() -> None:
    """Whether or not they have gradients."""
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(5, 2)
    represent = adapt(lambda batch: module(torch.tensor(batch, dtype=torch.float32)))
    assert represent(ROWS).shape == (60, 2)


# ONNX


def onnx_model(folder: Path, rows: int | None = None, kind: str = "FLOAT", inputs: int = 1) -> Path:
    """A file with a model of two outputs: twice x, and three times x."""
    onnx = pytest.importorskip("onnx")
    helper, number = onnx.helper, getattr(onnx.TensorProto, kind)
    tensor = helper.make_tensor_value_info
    names = ["x", "y"][:inputs]
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", names[-1]], ["twice"]),
            helper.make_node("Add", ["twice", "x"], ["thrice"]),
        ],
        "sums",
        [tensor(name, number, [rows or "n", 5]) for name in names],
        [tensor(name, number, [rows or "n", 5]) for name in ("twice", "thrice")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = folder / "sums.onnx"
    onnx.save(model, file)
    return file


def test_an_onnx_file(tmp_path: Path) -> None:
    """Its first output, or the one that is named; a file can hold the model."""
    pytest.importorskip("onnxruntime")
    file = onnx_model(tmp_path)
    represent = adapt(str(file), batch_size=7)
    np.testing.assert_allclose(represent(ROWS), 2 * ROWS, rtol=1e-6)
    assert not represent.needs_fitting
    assert represent.storable
    thrice = adapt(ONNX(file, "thrice"))
    assert thrice.describe() == "the ONNX model sums.onnx, output 'thrice'"
    np.testing.assert_allclose(thrice(ROWS), 3 * ROWS, rtol=1e-6)
    file.unlink()
    loaded = kept_in_a_file(thrice, tmp_path)
    assert np.array_equal(loaded(ROWS), thrice(ROWS))
    assert repr(loaded) == repr(thrice)
    assert np.array_equal(pickle.loads(pickle.dumps(thrice))(ROWS), thrice(ROWS))


def test_an_onnx_file_for_single_observations(tmp_path: Path) -> None:
    """Gets them one by one."""
    pytest.importorskip("onnxruntime")
    np.testing.assert_allclose(adapt(onnx_model(tmp_path, rows=1))(ROWS), 2 * ROWS, rtol=1e-6)


def test_onnx_files_that_cannot_be_used(tmp_path: Path) -> None:
    """Each with its reason."""
    pytest.importorskip("onnxruntime")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    with pytest.raises(InputError, match="Cannot read the ONNX file"):
        adapt(tmp_path / "missing.onnx")(ROWS)
    with pytest.raises(InputError, match=r"cannot load the ONNX model broken\.onnx"):
        adapt(broken)(ROWS)
    with pytest.raises(InputError, match="exactly 8 observations"):
        adapt(onnx_model(tmp_path, rows=8))(ROWS)
    with pytest.raises(InputError, match=r"x: tensor\(int64\)"):
        adapt(onnx_model(tmp_path, kind="INT64"))(ROWS)
    with pytest.raises(InputError, match=r"x: tensor\(float\), y: tensor\(float\)"):
        adapt(onnx_model(tmp_path, inputs=2))(ROWS)
    with pytest.raises(InputError, match="outputs are 'twice', 'thrice'"):
        adapt(ONNX(onnx_model(tmp_path), "sum"))(ROWS)


def test_an_onnx_file_is_read_by_a_fit(tmp_path: Path) -> None:
    """No constructor looks at it; copies hold what it held."""
    file = tmp_path / "later.onnx"
    detector = Detector(100, preprocess=ONNX(file, "thrice"))
    with pytest.raises(InputError, match=r"Cannot read the ONNX file .*later\.onnx: No such file"):
        detector.fit(ROWS)
    with pytest.raises(InputError, match=r"ONNX\(model=5\): a model is the path of an ONNX file"):
        Detector(100, preprocess=ONNX(5)).fit(ROWS)  # type: ignore[arg-type]
    file.write_bytes(b"a model")
    copied = pickle.loads(pickle.dumps(ONNX(file, "thrice")))
    file.unlink()
    assert (copied.content, copied.name, copied.output) == (b"a model", "later.onnx", "thrice")


def test_onnxruntime_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "any.onnx"
    file.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tocsin\[onnx\]'"):
        adapt(file)(ROWS)
