"""Operations on vectors of sixteen numbers, which numba cannot express: it keeps what they add up in memory.

numba vectorises plain loops over long arrays well. These loops are short, or add up many sums at once: stated in LLVM's
vectors, they hold their sums in registers, and leave no remainder to be done one by one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from tocsin._compute.arrays import Float32Array

_types = importlib.import_module("numba.core.types")
_cgutils = importlib.import_module("numba.core.cgutils")
_extending = importlib.import_module("numba.extending")
_ir = importlib.import_module("llvmlite.ir")

LANES = 16
"""Numbers of a vector; arrays that are read or written here are padded to it."""

Intrinsic = tuple[object, Callable[..., object]]
"""A signature in numba's types, and what generates the code for it."""

# What numba and llvmlite compile with has no types.
_INTEGER, _FLOAT = _ir.IntType(64), _ir.FloatType()
_VECTOR = _ir.VectorType(_FLOAT, LANES)
_ZERO = _ir.Constant(_VECTOR, [0.0] * LANES)
_FUSED = ("contract",)


class _Code:
    """LLVM code of a function that takes arrays of two dimensions, in order of rows, and whole numbers."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> None:
        self.builder = builder
        for kind in signature.args:
            assert not isinstance(kind, _types.Array) or (kind.ndim, kind.layout) == (2, "C"), kind
        self._arrays = {
            i: context.make_array(kind)(context, builder, arguments[i])
            for i, kind in enumerate(signature.args)
            if isinstance(kind, _types.Array)
        }

    def rows(self, array: int) -> Any:
        return _cgutils.unpack_tuple(self.builder, self._arrays[array].shape, 2)[0]

    def place(self, array: int, row: Any, column: Any) -> Any:
        """Where an entry of the array that is argument number `array` is."""
        made = self._arrays[array]
        width = _cgutils.unpack_tuple(self.builder, made.shape, 2)[1]
        return self.builder.gep(made.data, [self.builder.add(self.builder.mul(row, width), column)])

    def moved(self, pointer: Any, steps: Any) -> Any:
        """A place so many entries further on."""
        return self.builder.gep(pointer, [steps])

    def load(self, pointer: Any) -> Any:
        """The vector that begins there."""
        return self.builder.load(self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=4, typ=_VECTOR)

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, self.builder.bitcast(pointer, _VECTOR.as_pointer()), align=4)

    def everywhere(self, pointer: Any) -> Any:
        """A vector of the one number that is there."""
        unset = _ir.Constant(_VECTOR, _ir.Undefined)
        single = self.builder.insert_element(unset, self.builder.load(pointer), _ir.IntType(32)(0))
        first = _ir.Constant(_ir.VectorType(_ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(single, unset, first)

    def loop(
        self, first: Any, last: Any, sums: Sequence[Any], step: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """for k = first, ..., last - 1 let the sums be step(k, sums); what they are in the end."""
        builder, before = self.builder, self.builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        k, kept = builder.phi(_INTEGER), [builder.phi(total.type) for total in sums]
        k.add_incoming(first, before)
        for total, start in zip(kept, sums, strict=True):
            total.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", k, last), body, after)
        builder.position_at_end(body)
        for total, new in zip(kept, step(k, list(kept)), strict=True):
            total.add_incoming(new, builder.block)
        k.add_incoming(builder.add(k, _INTEGER(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return kept

    def total(self, vector: Any) -> Any:
        """Of the numbers of a vector, half by half; a double."""
        size = LANES
        while size > 1:
            unset = _ir.Constant(_ir.VectorType(_FLOAT, size), _ir.Undefined)
            halves = [
                self.builder.shuffle_vector(
                    vector, unset, _ir.Constant(_ir.VectorType(_ir.IntType(32), size // 2), list(places))
                )
                for places in (range(size // 2), range(size // 2, size))
            ]
            vector, size = self.builder.fadd(*halves), size // 2
        return self.builder.fpext(self.builder.extract_element(vector, _ir.IntType(32)(0)), _ir.DoubleType())


def _float_of_bits(_: object, bits: object) -> Intrinsic:
    def generate(context: object, builder: Any, signature: object, arguments: list[object]) -> object:
        return builder.bitcast(arguments[0], _FLOAT)

    return _types.float32(_types.int32), generate


float_of_bits: Callable[[Any], Any] = _extending.intrinsic(_float_of_bits)
"""The float32 with these 32 bits."""


Tile = Callable[[Float32Array, int, Float32Array, int, Float32Array, int, int], None]


def _distances(rows: int, vectors: int) -> Tile:
    """Squared distances of `rows` queries to `16 * vectors` points, all held in registers.

    (points, first, queries, query, out, stride, start): for r < rows, j < 16 * vectors, points and queries as (d, n),
    out[0, r * stride + start + j] = sum_k (points[k, first + j] - queries[k, query + r])^2.
    Every pair is one chain of d multiply-adds, so its value does not depend on the tile it was computed in.
    """

    def intrinsic(
        _: object, points: Any, first: object, queries: object, query: object, out: object, stride: object,
        start: object,
    ) -> Intrinsic:  # fmt: skip
        signature = _types.void(points, _types.intp, queries, _types.intp, out, _types.intp, _types.intp)

        def generate(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> object:
            code = _Code(context, builder, signature, arguments)
            depth = code.rows(0)

            def add(k: Any, sums: list[Any]) -> list[Any]:
                point, asked = code.place(0, k, arguments[1]), code.place(2, k, arguments[3])
                loaded = [code.load(code.moved(point, _INTEGER(v * LANES))) for v in range(vectors)]
                added = []
                for r in range(rows):
                    query = code.everywhere(code.moved(asked, _INTEGER(r)))
                    for v in range(vectors):
                        difference = builder.fsub(loaded[v], query)
                        square = builder.fmul(difference, difference, flags=_FUSED)
                        added.append(builder.fadd(square, sums[r * vectors + v], flags=_FUSED))
                return added

            sums = code.loop(_INTEGER(0), depth, [_ZERO] * (rows * vectors), add)
            for r in range(rows):
                line = builder.add(builder.mul(_INTEGER(r), arguments[5]), arguments[6])
                target = code.place(4, _INTEGER(0), line)
                for v in range(vectors):
                    code.store(sums[r * vectors + v], code.moved(target, _INTEGER(v * LANES)))
            return context.get_dummy_value()

        return signature, generate

    compiled: Tile = _extending.intrinsic(intrinsic)
    return compiled


distance_tile = _distances(4, 1)
"""Four queries against 16 points."""

distance_strip = _distances(1, 4)
"""One query against 64 points."""


def _product(
    _: object, left: Any, row: object, start: object, right: Any, column: object, first: object, last: object, out: Any
) -> Intrinsic:
    place = _types.intp
    signature = _types.void(left, place, place, right, place, place, place, out)
    rows, vectors = 4, 2

    def generate(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> object:
        code = _Code(context, builder, signature, arguments)
        _, row, start, _, column, first, last, _ = arguments
        lines = [code.place(0, builder.add(row, _INTEGER(r)), start) for r in range(rows)]

        def add(k: Any, sums: list[Any]) -> list[Any]:
            place = code.place(3, k, column)
            loaded = [code.load(code.moved(place, _INTEGER(v * LANES))) for v in range(vectors)]
            added = []
            for r in range(rows):
                factor = code.everywhere(code.moved(lines[r], builder.sub(k, first)))
                for v in range(vectors):
                    product = builder.fmul(factor, loaded[v], flags=_FUSED)
                    added.append(builder.fadd(product, sums[r * vectors + v], flags=_FUSED))
            return added

        sums = code.loop(first, last, [_ZERO] * (rows * vectors), add)
        for r in range(rows):
            for v in range(vectors):
                code.store(sums[r * vectors + v], code.place(7, _INTEGER(r), _INTEGER(v * LANES)))
        return context.get_dummy_value()

    return signature, generate


Product = Callable[[Float32Array, int, int, Float32Array, int, int, int, Float32Array], None]

product_tile: Product = _extending.intrinsic(_product)
"""(left, row, start, right, column, first, last, out): for r < 4, j < 32,
out[r, j] = sum_{first <= k < last} left[row + r, start + k - first] right[k, column + j]."""


def _add(
    _: object, sums: Any, row: object, column: object, terms: Any, other: object, start: object, vectors: object
) -> Intrinsic:
    place = _types.intp
    signature = _types.float64(sums, place, place, terms, place, place, place)

    def generate(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> object:
        code = _Code(context, builder, signature, arguments)
        _, row, column, _, other, start, vectors = arguments
        target, source = code.place(0, row, column), code.place(3, other, start)

        def add(v: Any, totals: list[Any]) -> list[Any]:
            steps = builder.mul(v, _INTEGER(LANES))
            place = code.moved(target, steps)
            added = builder.fadd(code.load(place), code.load(code.moved(source, steps)))
            code.store(added, place)
            return [builder.fadd(totals[0], added)]

        return code.total(code.loop(_INTEGER(0), vectors, [_ZERO], add)[0])

    return signature, generate


add_vectors: Callable[[Float32Array, int, int, Float32Array, int, int, int], float] = _extending.intrinsic(_add)
"""(sums, row, column, terms, other, start, vectors): add so many vectors from terms[other, start] on to those from
sums[row, column] on; the total of what is there then."""


def _total(_: object, values: Any, row: object, column: object, masks: Any, mask: object, vectors: object) -> Intrinsic:
    place = _types.intp
    signature = _types.float64(values, place, place, masks, place, place)

    def generate(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> object:
        code = _Code(context, builder, signature, arguments)
        _, row, column, _, mask, vectors = arguments
        source = code.place(0, row, column)
        first = builder.fmul(code.load(source), code.load(code.place(3, _INTEGER(0), mask)))

        def add(v: Any, totals: list[Any]) -> list[Any]:
            return [builder.fadd(totals[0], code.load(code.moved(source, builder.mul(v, _INTEGER(LANES)))))]

        return code.total(code.loop(_INTEGER(1), vectors, [first], add)[0])

    return signature, generate


total_of_vectors: Callable[[Float32Array, int, int, Float32Array, int, int], float] = _extending.intrinsic(_total)
"""(values, row, column, masks, mask, vectors): the total of so many vectors from values[row, column] on, the first of
them times the one at masks[0, mask:]."""
