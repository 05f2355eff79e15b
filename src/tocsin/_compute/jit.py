"""A typed door to numba, and the two operations it cannot express: bit casts and register tiles.

numba vectorises plain loops well, but keeps the accumulators of a matrix-like loop in memory. `distance_tile`
states that one loop in LLVM vectors instead, which made null paths four times faster than the best plain loop.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tocsin._compute import cache
from tocsin._compute.arrays import Float32Array

P = ParamSpec("P")
R = TypeVar("R")

_numba = importlib.import_module("numba")
_types = importlib.import_module("numba.core.types")
_cgutils = importlib.import_module("numba.core.cgutils")
_extending = importlib.import_module("numba.extending")
_ir = importlib.import_module("llvmlite.ir")

LANES = 16
"""Columns a tile computes at once; arrays that tiles read or write are padded to it."""

# Multiply-adds may be fused everywhere; sums may be reordered (so that they vectorise) only where `jit` says so.
_EXACT = {"contract", "nsz"}


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for the CPU, cache on disk, release the GIL; sums may be reordered."""
    return _compiled(function, _EXACT | {"reassoc"})


def exact(function: Callable[P, R]) -> Callable[P, R]:
    """As `jit`, with every operation in the order it is written."""
    return _compiled(function, _EXACT)


def literal(function: Callable[P, R]) -> Callable[P, R]:
    """As `exact`, with every operation rounded on its own: the same bits as NumPy's."""
    return _compiled(function, set())


def _compiled(function: Callable[P, R], fastmath: set[str]) -> Callable[P, R]:
    def compiled(*, keep: bool) -> Callable[P, R]:
        # Nobody calls these functions from C; leaving that entrance out saves a tenth of the time to compile.
        options = {"cache": keep, "nogil": True, "no_cfunc_wrapper": True, "fastmath": fastmath}
        result = _numba.njit(**options)(function)
        if keep:
            kept = result._cache._cache_file
            kept._source_stamp = kept._source_stamp, cache.stamp()
        return result  # type: ignore[no-any-return]

    try:
        return compiled(keep=True)
    except RuntimeError as error:
        if not str(error).startswith(cache.NO_PLACE):
            raise
    folder = cache.elsewhere()
    if folder is None:
        return compiled(keep=False)
    before, _numba.config.CACHE_DIR = _numba.config.CACHE_DIR, str(folder)
    try:
        return compiled(keep=True)
    finally:
        _numba.config.CACHE_DIR = before


Intrinsic = tuple[object, Callable[..., object]]
"""A signature in numba's types, and what generates the code for it."""


def _float_of_bits(_: object, bits: object) -> Intrinsic:
    # What numba and llvmlite compile with has no types.
    def generate(context: object, builder: Any, signature: object, arguments: list[object]) -> object:
        return builder.bitcast(arguments[0], _ir.FloatType())

    return _types.float32(_types.int32), generate


float_of_bits: Callable[[np.int32], np.float32] = _extending.intrinsic(_float_of_bits)
"""The float32 with these 32 bits."""


Tile = Callable[[Float32Array, int, Float32Array, int, Float32Array, int, int], None]


def _tile(rows: int, vectors: int) -> Tile:
    """Squared distances of `rows` queries to `16 * vectors` points, all held in registers.

    (points, first, queries, query, out, stride, start): for r < rows, j < 16 * vectors, points and queries as (d, n),
    out[r * stride + start + j] = sum_k (points[k, first + j] - queries[k, query + r])^2.
    Every pair is one chain of d multiply-adds, so its value does not depend on the tile it was computed in.
    """

    def intrinsic(
        _: object, points: object, first: object, queries: object, query: object, out: object, stride: object,
        start: object,
    ) -> Intrinsic:  # fmt: skip
        signature = _types.void(points, _types.intp, queries, _types.intp, out, _types.intp, _types.intp)

        def generate(context: Any, builder: Any, signature: Any, arguments: list[object]) -> object:
            integer, vector = _ir.IntType(64), _ir.VectorType(_ir.FloatType(), LANES)
            zero, unset = _ir.Constant(vector, [0.0] * LANES), _ir.Constant(vector, _ir.Undefined)
            first_lane = _ir.Constant(_ir.VectorType(_ir.IntType(32), LANES), [0] * LANES)
            arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 2, 4)]
            shapes = [_cgutils.unpack_tuple(builder, array.shape, 2) for array in arrays[:2]]
            pointers = [builder.gep(array.data, [arguments[i]]) for array, i in zip(arrays, (1, 3, 6), strict=True)]
            depth = shapes[0][0]

            before, body = builder.block, builder.append_basic_block("multiply_add")
            after = builder.append_basic_block("store")
            builder.branch(body)
            builder.position_at_end(body)
            k = builder.phi(integer)
            k.add_incoming(integer(0), before)
            sums = [[builder.phi(vector) for _ in range(vectors)] for _ in range(rows)]
            point = builder.gep(pointers[0], [builder.mul(k, shapes[0][1])])
            asked = builder.gep(pointers[1], [builder.mul(k, shapes[1][1])])
            loaded = [
                builder.load(
                    builder.bitcast(builder.gep(point, [integer(v * LANES)]), vector.as_pointer()), align=4, typ=vector
                )
                for v in range(vectors)
            ]
            totals = []
            for r in range(rows):
                scalar = builder.load(builder.gep(asked, [integer(r)]))
                splat = builder.shuffle_vector(
                    builder.insert_element(unset, scalar, _ir.IntType(32)(0)), unset, first_lane
                )
                line = []
                for v in range(vectors):
                    difference = builder.fsub(loaded[v], splat)
                    square = builder.fmul(difference, difference, flags=("contract",))
                    line.append(builder.fadd(square, sums[r][v], flags=("contract",)))
                    sums[r][v].add_incoming(zero, before)
                    sums[r][v].add_incoming(line[v], body)
                totals.append(line)
            following = builder.add(k, integer(1))
            k.add_incoming(following, body)
            builder.cbranch(builder.icmp_signed("<", following, depth), body, after)

            builder.position_at_end(after)
            for r in range(rows):
                for v in range(vectors):
                    offset = builder.add(builder.mul(integer(r), arguments[5]), integer(v * LANES))
                    target = builder.bitcast(builder.gep(pointers[2], [offset]), vector.as_pointer())
                    builder.store(totals[r][v], target, align=4)
            return context.get_dummy_value()

        return signature, generate

    compiled: Tile = _extending.intrinsic(intrinsic)
    return compiled


distance_tile = _tile(4, 1)
"""Four queries against 16 points."""

distance_strip = _tile(1, 4)
"""One query against 64 points."""
