"""Texts as vectors of their n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tocsin._data.tables.ngrams import PLACES, ngram_vectors

TEXTS = st.text(max_size=40)


@given(TEXTS)
def test_a_text_is_a_vector_of_length_1(text: str) -> None:
    """Unless there is nothing in it, or its few n-grams cancel."""
    (vector,) = ngram_vectors([text])
    assert vector.shape == (PLACES,)
    length = np.linalg.norm(vector)
    assert length == pytest.approx(1) or (length == 0 and len(text.split()) <= 2)
    assert text.strip() or length == 0


@given(st.text(st.characters(max_codepoint=127), max_size=40), st.sampled_from([" ", "\n", "\t \t"]))
def test_case_and_white_space_do_not_matter(text: str, space: str) -> None:
    """Words are what counts."""
    plain, loud, spread = ngram_vectors([text, text.upper(), space + space.join(text.split()) + space])
    np.testing.assert_array_equal(plain, loud)
    np.testing.assert_array_equal(plain, spread)


@given(st.lists(st.none() | TEXTS, max_size=6))
def test_a_text_is_the_same_in_every_batch(texts: list[str | None]) -> None:
    """To the last bit."""
    together = ngram_vectors(texts)
    assert together.shape == (len(texts), PLACES)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(ngram_vectors([text])[0], vector)


def counted(text: str) -> dict[bytes, int]:
    """How often each n-gram occurs."""
    told = f" {' '.join(text.casefold().split())} ".encode()
    grams = [told[i : i + 3] for i in range(len(told) - 2)]
    return {gram: grams.count(gram) for gram in grams}


@given(TEXTS)
def test_ngrams_are_counted_by_place_and_sign(text: str) -> None:
    """As 32-bit arithmetic in Python's own numbers does it."""
    assume(text.strip())
    vector = np.zeros(PLACES)
    for gram, count in counted(text).items():
        code = 2166136261
        for byte in gram:
            code = ((code ^ byte) * 16777619) % 2**32
        code = ((code ^ code >> 15) * 2246822519) % 2**32
        code ^= code >> 13
        vector[code % PLACES] += count if code >> 16 & 1 else -count
    np.testing.assert_allclose(ngram_vectors([text])[0], vector / (np.linalg.norm(vector) or 1), atol=1e-12)


def test_texts_are_as_similar_as_their_ngrams() -> None:
    """Places are shared, but fairly: the cosine of vectors is that of counts, on average.

    The average of 400 differences, each of about 0.067, is within 0.017 of 0 but for once in 10^6; were signs left out,
    it would be off by 0.06.
    """
    rng = np.random.default_rng(0)
    words = ["pump", "valve", "flow", "steam", "meter", "leak", "open", "shut", "high", "hot", "cold", "noise", "dust"]
    differences = []
    for _ in range(400):
        one, other = (" ".join(rng.choice(words, 6)) for _ in range(2))
        a, b = counted(one), counted(other)
        dot = sum(count * b.get(gram, 0) for gram, count in a.items())
        sizes = [np.sqrt(sum(count**2 for count in own.values())) for own in (a, b)]
        first, second = ngram_vectors([one, other])
        differences.append(first @ second - dot / (sizes[0] * sizes[1]))
    assert abs(np.mean(differences)) < 0.017
    assert np.std(differences) < 0.15


def test_broken_characters_are_text_too() -> None:
    """Half of a surrogate pair, as JSON may hold it."""
    assert np.linalg.norm(ngram_vectors(["\ud800 broken"])) == pytest.approx(1)
