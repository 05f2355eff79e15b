"""Null streams and pseudo-references: every point as likely as the others, and blocks that keep to their groups.

Chi-square tests fail falsely once in 10^6 each (RARE); seeds are fixed and were not chosen.
"""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tocsin import LSDD, Blocks, Detector, InputError
from tocsin import _compute as compute
from tocsin._compute.arrays import Array, Int64Array
from tocsin._data import validation
from tocsin._samplers import SHARING, DrawnStreams, InBlocks, Singly, SplitStreams

RARE = 1e-6
FUNCTIONS = compute.load("numba")


def grouped(sizes: list[int]) -> Int64Array:
    """Bounds of groups of these sizes."""
    return np.cumsum([0, *sizes])


def rng(*seed: int) -> np.random.Generator:
    """The same generator each time."""
    return np.random.default_rng(seed)


in_blocks = st.builds(
    lambda sizes, length, guard: InBlocks(grouped(sizes), length, guard),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    length=st.integers(1, 30),
    guard=st.integers(0, 5),
)
"""Groups of any sizes, many of them shorter than a block."""

roomy = st.builds(
    lambda sizes, length, guard: InBlocks(grouped([*sizes, 30 * (length + guard)]), length, guard),
    sizes=st.lists(st.integers(1, 40), max_size=6),
    length=st.integers(1, 12),
    guard=st.integers(1, 5),
)
"""So many points that a block can always be followed by one that is far from it."""

ROOMY = InBlocks(grouped([130, 1, 70, 300]), 12, 4)


def chi_square(counts: Array, expected: Array | float) -> float:
    """p-value of counts of independent draws, where so many are expected."""
    expected = np.broadcast_to(expected, counts.shape)
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1))


def runs(stream: Array) -> list[tuple[int, int]]:
    """The stretches of a stream in which each point follows the one before it: first point, and one after the last."""
    joints = np.flatnonzero(np.diff(stream) != 1) + 1
    return [(int(piece[0]), int(piece[-1]) + 1) for piece in np.split(stream, joints)]


def group_of(source: InBlocks, point: int) -> int:
    """The group that a point is in."""
    return int(np.searchsorted(source.edges, point, side="right"))


# One point at a time


def test_single_points_are_drawn_alike() -> None:
    """Chi-square over 20 points, 10^5 draws: sees a point that is drawn 8 % too often."""
    source = Singly(20)
    streams, places = source.streams(rng(0), 5000, 20, FUNCTIONS), source.distinct(rng(1), 100_000, 3, FUNCTIONS)
    references = source.references(rng(2), 5000, FUNCTIONS)
    assert streams.shape == (5000, 20)
    assert streams.dtype == np.int32
    assert chi_square(np.bincount(streams.ravel(), minlength=20), 5000) > RARE
    for at_time in places.T:
        assert chi_square(np.bincount(at_time, minlength=20), 5000) > RARE
    assert chi_square(references.sum(1), 5000) > RARE


@given(count=st.integers(2, 60), seed=st.integers(0, 2**32))
def test_single_points_without_repetition_and_in_whole_numbers(count: int, seed: int) -> None:
    """A distinct stream may take all points; a pseudo-reference is as large as the reference."""
    source = Singly(count)
    distinct = source.distinct(rng(seed), 5, count, FUNCTIONS)
    assert np.sort(distinct, axis=1).tolist() == [list(range(count))] * 5
    references = source.references(rng(seed), 7, FUNCTIONS)
    assert references.shape == (count, 7)
    assert references.flags.c_contiguous
    assert (references.sum(0) == count).all()
    assert (references == np.round(references)).all()
    assert (source.length, source.guard) == (1, 0)


# Blocks


@given(source=in_blocks, seed=st.integers(0, 2**32))
def test_blocks_are_pieces_of_one_group(source: InBlocks, seed: int) -> None:
    """Not empty, no longer than asked for, and shorter only where the group ends."""
    for first, last in zip(*source.draw(rng(seed), 200), strict=True):
        assert 0 < last - first <= source.length
        assert group_of(source, first) == group_of(source, last - 1)
        assert last - first == source.length or first in source.edges or last in source.edges


@pytest.mark.parametrize("sizes", [[200], [3, 50, 1, 1, 120, 25]], ids=str)
@pytest.mark.parametrize("length", [1, 7, 40])
def test_blocks_cover_every_point_alike(sizes: list[int], length: int) -> None:
    """Whatever the groups: of many blocks, as many cover a point at an edge as one in the middle.

    Each point's count is binomial; the smallest of their N p-values is below RARE / N once in 10^6 (Bonferroni). Sees a
    point that is covered 10 % too often or too seldom.
    """
    source, blocks = InBlocks(grouped(sizes), length, 0), 100_000
    first, last = source.draw(rng(length), blocks)
    changes = np.bincount(first, minlength=source.count + 1) - np.bincount(last, minlength=source.count + 1)
    covered = np.cumsum(changes)[:-1]
    share = length / (source.count + len(sizes) * (length - 1))
    tails = np.minimum(stats.binom.cdf(covered, blocks, share), stats.binom.sf(covered - 1, blocks, share))
    assert 2 * tails.min() * source.count > RARE


@given(source=in_blocks, length=st.integers(1, 90), seed=st.integers(0, 2**32))
def test_streams_of_blocks(source: InBlocks, length: int, seed: int) -> None:
    """As many points as asked for, of the reference, in any groups."""
    streams = source.streams(rng(seed), 9, length, FUNCTIONS)
    assert streams.shape == (9, length)
    assert streams.dtype == np.int32
    assert 0 <= streams.min() <= streams.max() < source.count


@given(source=roomy, seed=st.integers(0, 2**32))
def test_blocks_of_a_stream_are_far_apart_and_in_one_group(source: InBlocks, seed: int) -> None:
    """By more than the guard, so that no window holds a point twice, or one that resembles it because it is near.

    Then no block goes on where the one before it ended, and each stretch of points that follow each other is a block.
    """
    for stream in source.streams(rng(seed), 20, 100, FUNCTIONS):
        stretches = runs(stream)
        for first, last in stretches:
            assert last - first <= source.length
            assert group_of(source, first) == group_of(source, last - 1)
        for (first, last), (next_first, next_last) in pairwise(stretches):
            assert next_first - last >= source.guard or first - next_last >= source.guard


def test_where_no_block_is_far_enough_streams_go_on() -> None:
    """A guard that no two blocks can keep costs a few draws, and no more."""
    streams = InBlocks(grouped([20]), 10, guard=100).streams(rng(0), 50, 60, FUNCTIONS)
    assert set(streams.ravel().tolist()) == set(range(20))


def test_streams_begin_with_any_point_anywhere_in_a_block() -> None:
    """The first point is any of the reference's, and a joint may come after any number of tests.

    What is left of the first block is 1 to `length` points, each as likely, or less where the group ends before.
    Chi-square over 501 points, 2 * 10^5 streams: sees one that begins a stream 40 % too often, or a joint 4 % early.
    """
    streams = ROOMY.streams(rng(3), 200_000, ROOMY.length + 1, FUNCTIONS)
    first = streams[:, 0].astype(np.int64)
    assert chi_square(np.bincount(first, minlength=ROOMY.count), len(first) / ROOMY.count) > RARE
    left = np.where(np.diff(streams, axis=1) != 1, 1, 0).argmax(1) + 1
    group_ends = ROOMY.edges[np.searchsorted(ROOMY.edges, np.arange(ROOMY.count), side="right")]
    room = np.minimum(group_ends - np.arange(ROOMY.count), ROOMY.length)
    sizes = np.arange(1, ROOMY.length + 1)
    share = np.mean((sizes <= room[:, None]) / ROOMY.length, axis=0)
    share += [np.mean((room == size) * (ROOMY.length - size) / ROOMY.length) for size in sizes]
    assert chi_square(np.bincount(left, minlength=ROOMY.length + 1)[1:], len(left) * share) > RARE


@given(source=in_blocks, part=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_distinct_streams_of_blocks(source: InBlocks, part: float, seed: int) -> None:
    """No point twice, even where the stream takes all of them."""
    length = max(1, round(part * source.count))
    for stream in source.distinct(rng(seed), 4, length, FUNCTIONS):
        assert len(set(stream.tolist())) == length
        assert 0 <= stream.min() <= stream.max() < source.count


def test_distinct_streams_come_in_blocks() -> None:
    """While few points are taken, they are as contiguous as those of other streams."""
    stretches = [runs(stream) for stream in ROOMY.distinct(rng(0), 200, 3 * ROOMY.length, FUNCTIONS)]
    assert 3 <= np.mean([len(pieces) for pieces in stretches]) < 5


@given(source=in_blocks, seed=st.integers(0, 2**32))
def test_pseudo_references_of_blocks(source: InBlocks, seed: int) -> None:
    """Whole numbers that sum to the size of the reference, in any groups."""
    references = source.references(rng(seed), 5, FUNCTIONS)
    assert references.shape == (source.count, 5)
    assert references.dtype == np.float32
    assert references.flags.c_contiguous
    assert (references.sum(0) == source.count).all()
    assert (references >= 0).all()
    assert (references == np.round(references)).all()


def test_pseudo_references_hold_every_point_once_on_average() -> None:
    """To 5 %: the last block is cut short to fit, which moves a few of its points by up to length / (2 N).

    A mean over 20,000 has a standard error of 0.8 %; 5.4 of them leave one in 10^6 for 501 points together.
    """
    weights = ROOMY.references(rng(5), 20_000, FUNCTIONS)
    error = weights.std(1) / 20_000**0.5
    assert (np.abs(weights.mean(1) - 1) < 5.4 * error + ROOMY.length / (2 * ROOMY.count)).all()


def test_pseudo_references_vary_as_blocks_do() -> None:
    """Points of a block are drawn together: sums over one vary as its length, not as its root.

    By the overlaps of blocks with a stretch of their length, its variance is 2/3 length^2 instead of `length`: here 8
    times as much. A variance of 4000 copies is known to 2 %, so 5 to 10 times leaves it far more than five errors.
    """
    together = ROOMY.references(rng(6), 4000, FUNCTIONS)[330 : 330 + ROOMY.length].sum(0)
    one_by_one = Singly(ROOMY.count).references(rng(6), 4000, FUNCTIONS)[330 : 330 + ROOMY.length].sum(0)
    assert 5 < together.var() / one_by_one.var() < 10


# Streams for a calibration


@pytest.mark.parametrize("source", [Singly(50), ROOMY], ids=["singly", "blocks"])
def test_samplers_draw_points_copies_and_coins(source: Singly | InBlocks) -> None:
    """Each of its own shape and range; a split stream meets no pseudo-reference, and no point twice."""
    drawn = DrawnStreams(source, 30, copies=3).draw(rng(0), 200, FUNCTIONS)
    assert drawn.copies.shape == (200, 1)
    assert set(drawn.copies.ravel().tolist()) == {0, 1, 2}
    split = SplitStreams(source, 30).draw(rng(0), 200, FUNCTIONS)
    assert split.copies.shape == (200, 0)
    assert all(len(set(stream)) == 30 for stream in split.points.tolist())
    for streams in (drawn, split):
        assert streams.points.shape == streams.coins.shape == (200, 30)
        assert ((streams.coins >= 0) & (streams.coins < 1)).all()


@pytest.mark.parametrize("source", [Singly(50), ROOMY], ids=["singly", "blocks"])
@pytest.mark.parametrize("kind", ["drawn", "split", "laws"])
def test_points_can_be_drawn_again_alone(source: Singly | InBlocks, kind: str) -> None:
    """The same as with copies and coins."""
    laws = np.arange(3 * source.count, dtype=np.int32).reshape(3, -1) % source.count if kind == "laws" else None
    sampler = SplitStreams(source, 30) if kind == "split" else DrawnStreams(source, 30, 3, laws)
    points = sampler.points(rng(0), 40, FUNCTIONS)
    np.testing.assert_array_equal(points, sampler.draw(rng(0), 40, FUNCTIONS).points)


def test_streams_meet_all_pseudo_references_alike() -> None:
    """Though some in a row meet the same one. Chi-square over 5 of them, 2000 rows: sees one met 20 % too often."""
    sampler = DrawnStreams(Singly(50), 1, copies=5)
    copies = sampler.draw(rng(0), 2000 * SHARING, FUNCTIONS).copies.reshape(2000, SHARING)
    assert (copies == copies[:, :1]).all()
    assert chi_square(np.bincount(copies[:, 0], minlength=5), 400.0) > RARE


# Groups as users give them

DAY = datetime.date(2024, 1, 1)
LABELS: dict[str, Any] = {
    "words": ["a"] * 3 + ["b"] * 2 + ["a"] * 4,
    "numbers": np.array([7, 7, 7, -1, -1, 7, 7, 7, 7]),
    "floats": [0.5] * 3 + [0.25] * 2 + [0.5] * 4,
    "booleans": [True] * 3 + [False] * 2 + [True] * 4,
    "dates": [DAY] * 3 + [DAY.replace(day=2)] * 2 + [DAY] * 4,
    "times": np.array(["2024-01-01"] * 3 + ["2024-01-02"] * 2 + ["2024-01-01"] * 4, dtype="datetime64[s]"),
    "mixed": np.array([None, None, None, "b", "b", None, None, None, None], dtype=object),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_any_type_name_groups(labels: Any) -> None:
    """A group is what has one label without interruption: a label that comes again is another group."""
    assert validation.group_edges(labels, 9).tolist() == [0, 3, 5, 9]
    assert validation.group_edges(list(labels), 9).tolist() == [0, 3, 5, 9]


def test_groups_of_all_and_of_each() -> None:
    """One group if none are given, or if all labels are alike; each point its own if none are."""
    assert validation.group_edges(None, 4).tolist() == [0, 4]
    assert validation.group_edges(["a"] * 4, 4).tolist() == [0, 4]
    assert validation.group_edges(range(4), 4).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("groups", "shape"),
    [(["a"] * 99, r"\(99,\)"), ([], r"\(0,\)"), (3, r"\(\)"), ("a", r"\(\)"), (np.zeros((100, 2)), r"\(100, 2\)")],
    ids=str,
)
def test_wrong_groups(groups: Any, shape: str) -> None:
    """Refused, with what they are and what they must be."""
    with pytest.raises(InputError, match=rf"groups has shape {shape}; .* each of the 100 .* one label per observation"):
        Detector(30, window=5, paths=60).fit(rng(0).normal(size=(100, 2)), groups=groups)


def test_groups_stay_what_they_are_where_points_are_set_aside() -> None:
    """LSDD takes its centres out of the reference: bounds move along."""
    points, labels = rng(1).normal(size=(300, 2)), np.repeat([5, 2, 9], [120, 60, 120])
    detector = Detector(30, LSDD(centres=40), window=5, sampler=Blocks(12, 2), interval=False, paths=200, seed=0)
    detector.fit(points, groups=labels)
    kept = [int(np.flatnonzero((points == point).all(1))[0]) for point in detector.reference_]
    assert len(kept) == 260
    assert kept == sorted(kept)
    assert detector._fitted is not None
    assert detector._fitted.edges is not None
    assert detector._fitted.edges.tolist() == validation.group_edges(labels[kept], 260).tolist()
