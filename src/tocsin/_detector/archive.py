"""The zip of a `.tocsin` file, before anything in it is believed: nothing takes more memory than its own size tells."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from typing import BinaryIO

import numpy as np

from tocsin._compute.arrays import Array, Int64Array
from tocsin._detector.schema import Wrong, must

DESCRIPTION = "tocsin.json"

DEEPEST = 100
"""Levels of a description."""

FREE = 40 * 2**20
"""Bytes that the values of a description may take, besides as many as the file has: small values take many times their
place in a file."""

LIST, DICT, ITEM, TEXT, NAME, NEW_NAME = 100, 200, 24, 64, 16, 120
"""Bytes that Python takes, or a little more: for a list, a dict, each value in one, a text besides its letters, and a
name in a dict, which costs more when it is there for the first time."""

WIDE = 5
"""Bytes more for each letter of a text that has any outside of ASCII."""

MOST_MEMBERS, MOST_OF_A_MEMBER = 2**15, 96
"""Arrays in a file, and bytes of its directory for each: what there is to read before anything is known to be ours."""

HEADER = re.compile(
    rb"\{'descr': '([<>|][biuf]\d{1,2})', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \} *\n"
)
"""Of an array, as NumPy writes it, and nothing else that NumPy would read."""

PIECE = 2**20
"""Bytes that are read at once."""

MAGIC = b"\x93NUMPY\x01\x00"


def members(file: BinaryIO) -> int:
    """How many members the zip says it has, by its last record, which is read before its directory is."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - END.size - FAR_END.size - LOCATOR, 0))
    tail = file.read()
    if len(tail) < END.size or not tail.startswith(b"PK\x05\x06", len(tail) - END.size):
        raise zipfile.BadZipFile("it does not end as a zip does")
    count, directory, comment = (END.unpack(tail[-END.size :])[i] for i in (4, 5, 7))
    if tail.startswith(b"PK\x06\x07", len(tail) - END.size - LOCATOR):
        far = tail[: FAR_END.size]
        if len(tail) < END.size + LOCATOR + FAR_END.size or not far.startswith(b"PK\x06\x06"):
            raise zipfile.BadZipFile("its last records do not belong together")
        count, directory = (FAR_END.unpack(far)[i] for i in (7, 8))
    if comment or not 0 < count <= MOST_MEMBERS or directory > MOST_OF_A_MEMBER * count:
        raise zipfile.BadZipFile(f"its directory of {directory:,} bytes has {count:,} members")
    return int(count)


END = struct.Struct("<4s4H2LH")
"""The last record of a zip: ..., members, bytes of the directory, its place, length of a comment."""

FAR_END = struct.Struct("<4sQ2H2L4Q")
"""The same where numbers are large, and the length of what says where that is."""

LOCATOR = 20


def must_be_stored(archive: zipfile.ZipFile, members: int, size: int) -> None:
    """Refuse a zip that could become larger than it is, or whose members are not ours."""
    names = [member.filename for member in archive.infolist()]
    if sorted(names) != sorted([DESCRIPTION, *(f"{i}.npy" for i in range(members - 1))]):
        raise Wrong("the list of members", names, f"{DESCRIPTION} and arrays, each once")
    for member in archive.infolist():
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise Wrong(member.filename, "compressed", "stored as it is")
    total = sum(member.file_size for member in archive.infolist())
    if total > size:
        raise Wrong("the size of all members", f"{total:,} bytes", f"at most that of the file, {size:,}")


def must_be_modest(description: bytes, size: int) -> None:
    """Refuse a description that would take many times its size in memory, or too deep a stack; size: of its file."""
    most = FREE + size
    must(description.isascii(), "the description", "of other letters", "ASCII, with escapes for all else")
    # As long as before, so that places stay; whatever quote is left begins a text or ends it.
    plain = description.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    quotes, signs = plain.count(b'"'), _signs(plain)
    names = signs[ord(":")]
    cost = LIST * signs[ord("[")] + DICT * signs[ord("{")] + ITEM * signs[ord(",")] + NAME * names
    cost += TEXT * max(quotes // 2 - names, 0)
    _must_fit(cost, most)
    must(quotes % 2 == 0, "the description", f"of {quotes} quotes", "of texts that end")
    starts, ends = _places(plain, b'"', quotes).reshape(-1, 2).T
    named = np.frombuffer(plain, np.uint8)[np.minimum(ends + 1, len(plain) - 1)] == ord(":")
    must(int(named.sum()) == names, "the description", f"of {names} names", "of names with a colon right behind them")
    cost += _widened(plain, starts, ends)
    _must_fit(cost, most)
    spans = zip(starts[named], ends[named], strict=True)
    known = np.fromiter((hash(description[start:end]) for start, end in spans), np.int64, names)
    known.sort()
    _must_fit(cost + NEW_NAME * int((known[1:] != known[:-1]).sum()), most)


def _must_fit(cost: int, most: int) -> None:
    must(cost <= most, "the description", f"of values that take {cost:,} bytes or more", f"of {most:,} at most")


def _signs(plain: bytes) -> list[int]:
    """How often each byte comes outside of texts; refuses what is too deep."""
    counts = np.zeros(256, np.int64)
    depth = deepest = inside = 0
    for place in range(0, len(plain), PIECE):
        piece = np.frombuffer(plain, np.uint8, min(PIECE, len(plain) - place), place)
        within = np.bitwise_xor.accumulate((piece == ord('"')).view(np.uint8)) ^ inside
        inside = int(within[-1])
        outside = piece[within == 0]
        counts += np.bincount(outside, minlength=256)
        depths = depth + np.cumsum(STEPS[outside], dtype=np.int32)
        if len(depths):
            depth, deepest = int(depths[-1]), max(deepest, int(depths.max()))
    must(deepest <= DEEPEST, "the description", f"nested {deepest} deep", f"at most {DEEPEST} deep")
    found: list[int] = counts.tolist()
    return found


def _places(plain: bytes, byte: bytes, count: int) -> Int64Array:
    """Where a byte is, which is there so often."""
    places, known = np.empty(count, np.int64), 0
    for at in range(0, len(plain), PIECE):
        found = np.flatnonzero(np.frombuffer(plain[at : at + PIECE], np.uint8) == ord(byte))
        places[known : known + len(found)] = found + at
        known += len(found)
    return places


def _widened(plain: bytes, starts: Int64Array, ends: Int64Array) -> int:
    """Bytes that texts take besides one for each letter: a single escape widens all letters of its text."""
    escapes = np.zeros(len(starts), np.int64)
    for at in range(0, len(plain), PIECE):
        piece = np.frombuffer(plain[at : at + PIECE + 1], np.uint8)
        found = np.flatnonzero((piece[:-1] == ord("\\")) & (piece[1:] == ord("u"))) + at
        if len(found) and len(starts):
            np.add.at(escapes, np.searchsorted(starts, found, "right") - 1, 1)
    letters = ends - starts - 1 - (ESCAPE - 1) * escapes
    return WIDE * int(letters[escapes > 0].clip(0).sum())


ESCAPE = len("\\u0041")

STEPS = np.zeros(256, np.int8)
"""What a byte does to the depth."""
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


def read_array(archive: zipfile.ZipFile, name: str) -> Array:
    """An array, into memory that its header and its size agree on."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as member:
        start = member.read(len(MAGIC) + 2)
        if len(start) < len(MAGIC) + 2 or not start.startswith(MAGIC):
            raise Wrong(name, start, "an array")
        header = member.read(int.from_bytes(start[-2:], "little"))
        found = HEADER.fullmatch(header)
        if found is None:
            raise Wrong(name, header, "an array of numbers, with a header as NumPy writes it")
        kind = np.dtype(found[1].decode())
        shape = tuple(int(length) for length in found[3].replace(b",", b" ").split())
        told = math.prod(shape) * kind.itemsize
        if told != size - len(start) - len(header):
            raise Wrong(name, f"{size:,} bytes", f"a header and {told:,} bytes, by its shape {shape} of {kind}")
        array: Array = np.empty(shape[::-1] if found[2] == b"True" else shape, kind)
        numbers = array.reshape(-1).view(np.uint8)
        for place in range(0, told, PIECE):
            numbers[place : place + PIECE] = np.frombuffer(member.read(min(PIECE, told - place)), np.uint8)
    return array.T if found[2] == b"True" else array.astype(kind.newbyteorder("="), copy=False)
