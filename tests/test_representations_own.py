"""Tocsin's own representations: PCA, autoencoders and embeddings of sentences; and one after the other."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from representing import IMAGES, ROWS, kept_in_a_file
from tocsin._common.errors import InputError, MissingExtraError, NotFittedError
from tocsin._compute.arrays import Float64Array
from tocsin._data.representations import adapt
from tocsin.representations import PCA, Autoencoder, SentenceEmbedding

# PCA


@pytest.mark.parametrize("whiten", [False, True])
def test_pca_agrees_with_scikit_learn(whiten: bool) -> None:
    """But for signs, which are ours: the largest number of an axis is positive."""
    theirs = pytest.importorskip("sklearn.decomposition").PCA(3, whiten=whiten).fit(ROWS)
    represent = adapt(PCA(3, whiten=whiten)).fit(ROWS)
    np.testing.assert_allclose(np.abs(represent(ROWS[:9])), np.abs(theirs.transform(ROWS[:9])), atol=1e-12)
    explained = theirs.explained_variance_ratio_.sum()
    assert represent.describe() == f"PCA of 5 numbers to 3 ({explained:.0%} of the variance)"


def test_pca_of_images(tmp_path: Path) -> None:
    """Flattened; the same from a file, bit for bit."""
    represent = adapt(PCA(4)).fit(IMAGES)
    rows = represent(IMAGES)
    assert rows.shape == (60, 4)
    np.testing.assert_allclose(rows.mean(0), 0, atol=1e-12)
    assert np.all(np.diff(rows.std(0)) < 0)
    assert represent.storable
    assert np.array_equal(kept_in_a_file(represent, tmp_path)(IMAGES), rows)
    with pytest.raises(InputError, match="observations of 42 numbers, and got some of 36"):
        represent(IMAGES[:, :, :6])


def test_pca_refuses() -> None:
    """Sizes that make no sense, and data that do not vary enough."""
    with pytest.raises(InputError, match=r"PCA\(components=0\)"):
        adapt(PCA(0)).fit(ROWS)
    with pytest.raises(InputError, match="only 2 directions"):
        adapt(PCA(3)).fit(ROWS[:3])
    with pytest.raises(InputError, match="only 0 directions"):
        adapt(PCA(1)).fit(np.ones((9, 2)))
    with pytest.raises(InputError, match="not finite"):
        adapt(PCA(1)).fit(np.full((9, 2), np.nan))
    with pytest.raises(InputError, match="fewer than two"):
        adapt(PCA(1)).fit(ROWS[:1])
    with pytest.raises(NotFittedError, match="PCA to 2 numbers has not learned"):
        PCA(2)(ROWS)


# Autoencoders


@pytest.mark.parametrize("shape", [(20,), (8, 9), (2, 7, 8), (8, 6, 3)], ids=str)
def test_autoencoder(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Learns two numbers behind many; the same for the same seed, and from a file."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    size = int(np.prod(shape))
    observations = (rng.normal(size=(200, 2)) @ rng.normal(size=(2, size))).reshape(200, *shape) * 20 + 100
    represent, again = (adapt(Autoencoder(2, epochs=15)).fit(observations, seed=1) for _ in range(2))
    rows = represent(observations)
    assert rows.shape == (200, 2)
    assert np.array_equal(again(observations), rows)
    best_single_number = adapt(PCA(1)).fit(observations)
    assert represent.step.explained > best_single_number.step.explained  # type: ignore[attr-defined]
    loaded = kept_in_a_file(represent, tmp_path)
    assert np.array_equal(loaded(observations), rows)
    assert loaded.describe() == represent.describe()
    assert np.array_equal(pickle.loads(pickle.dumps(represent))(observations), rows)


def test_autoencoder_leaves_the_world_alone() -> None:
    """Neither PyTorch's random numbers nor its threads change; its own seed comes before that of the fit."""
    torch = pytest.importorskip("torch")
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    learner = Autoencoder(2, hidden=4, epochs=1, seed=7)  # type: ignore[arg-type]
    first, second = (adapt(learner).fit(ROWS, seed)(ROWS) for seed in (1, 2))
    assert np.array_equal(first, second)
    third, fourth = (adapt(replace(learner, seed=None)).fit(ROWS, seed)(ROWS) for seed in (1, 2))
    assert not np.allclose(third, fourth)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)
    assert adapt(Autoencoder(1, hidden=(), epochs=1)).fit(ROWS)(ROWS).shape == (60, 1)


def test_autoencoder_columns_that_never_vary() -> None:
    """They have no scale, and do no harm."""
    pytest.importorskip("torch")
    rows = np.column_stack([ROWS, np.full(60, 5.0), np.zeros(60)])
    assert np.all(np.abs(adapt(Autoencoder(2, epochs=1)).fit(rows)(rows)) < 100)


def test_autoencoder_refuses() -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"Autoencoder\(hidden\[1\]=0\)"):
        adapt(Autoencoder(2, hidden=(3, 0))).fit(ROWS)
    with pytest.raises(InputError, match=r"Autoencoder\(latent=1.5\)"):
        adapt(Autoencoder(1.5)).fit(ROWS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no convolutions"):
        adapt(Autoencoder(2, hidden=())).fit(IMAGES)
    with pytest.raises(InputError, match="rows of numbers or images"):
        adapt(Autoencoder(2)).fit(np.zeros((5, 2, 2, 2, 2)))
    with pytest.raises(InputError, match=r"shape \(1, 6, 7\), and got some of shape \(1, 7, 6\)"):
        adapt(Autoencoder(2, epochs=1)).fit(IMAGES)(IMAGES.transpose(0, 2, 1))


def test_pytorch_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tocsin\[torch\]'"):
        adapt(Autoencoder(2)).fit(ROWS)


# Texts


class Letters:
    """A language model in small: how often each of the first letters occurs."""

    def encode(self, texts: list[str]) -> Float64Array:
        assert all(type(text) is str for text in texts)
        return np.array([[text.count(letter) for letter in "abcdef"] for text in texts], dtype=np.float64)


def test_sentence_embedding() -> None:
    """Of lists, arrays and series of texts."""
    represent = adapt(SentenceEmbedding(Letters()))
    assert represent(["abba", "cafe"]).tolist() == [[2, 2, 0, 0, 0, 0], [1, 0, 1, 0, 1, 1]]
    assert represent(np.array(["fee", "bad"]))[0].tolist() == [0, 0, 0, 0, 2, 1]
    assert represent.one("dad").tolist() == [[1, 0, 0, 2, 0, 0]]
    assert represent.describe() == "sentence embedding by Letters"
    assert not represent.storable
    with pytest.raises(InputError, match="Observation 1 of a batch is a float"):
        represent(["a", float("nan")])
    with pytest.raises(InputError, match="choose the one with the texts"):
        represent(np.array([["a", "b"]]))
    number: Any = 3
    with pytest.raises(InputError, match="a model has a method encode"):
        adapt(SentenceEmbedding(number))(["a text"])


def test_models_of_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known by their library, also bare; loaded by name; and the library may be missing."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"'sentence-transformers': pip install 'tocsin\[text\]'"):
        adapt(SentenceEmbedding("small"))(["a"])
    library: Any = type(sys)("sentence_transformers")
    theirs = type("SentenceTransformer", (Letters,), {"__module__": "sentence_transformers.model"})
    library.SentenceTransformer = lambda name: theirs()
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    assert adapt(SentenceEmbedding("small"))(["a"]).tolist() == [[1, 0, 0, 0, 0, 0]]
    assert adapt(theirs()).describe() == "sentence embedding by SentenceTransformer"


# One after the other


def test_chain(tmp_path: Path) -> None:
    """Those that must be are fitted to what those before them give."""
    texts = ["abc" * (i % 7) + "f" * (i % 4) for i in range(60)]
    represent = adapt([lambda batch: [text.lower() for text in batch], SentenceEmbedding(Letters()), PCA(2)])
    assert represent.needs_fitting
    fitted = represent.fit(texts)
    assert fitted(texts).shape == (60, 2)
    np.testing.assert_allclose(fitted(texts), adapt(PCA(2)).fit(Letters().encode(texts))(Letters().encode(texts)))
    assert not fitted.storable
    assert "then sentence embedding by Letters, then PCA of 6 numbers to 2" in fitted.describe()
    both = adapt([PCA(4), PCA(2)]).fit(ROWS)
    assert np.array_equal(kept_in_a_file(both, tmp_path)(ROWS), both(ROWS))


def test_chain_on_images() -> None:
    """What is between the steps need not be rows."""
    small = adapt([lambda images: images[:, ::2], PCA(3)], batch_size=16).fit(IMAGES)
    assert small(IMAGES).shape == (60, 3)
