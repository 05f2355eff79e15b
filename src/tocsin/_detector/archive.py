"""The zip of a `.tocsin` file, before anything in it is believed: nothing takes more memory than its own size tells."""

from __future__ import annotations

import math
import os
import re
import struct
import zipfile
from typing import BinaryIO

import numpy as np

from tocsin._compute.arrays import Array
from tocsin._detector.schema import Wrong

DESCRIPTION = "tocsin.json"

DEEPEST, MOST_VALUES, BYTES_PER_VALUE, WEIGHT_OF_LISTS = 100, 500_000, 16, 3
"""Of the description: how deep it may be nested, and how many values it may hold (more in a larger one), lists and
dicts counting for several: in memory small values take many times their place in a file."""

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


def must_be_modest(description: bytes) -> None:
    """Refuse a description that would take many times its size in memory, or too deep a stack."""
    bare = TEXTS.sub(b"", description.replace(b"\\\\", b"").replace(b'\\"', b""))
    depth = deepest = 0
    for place in range(0, len(bare), PIECE):
        steps = np.frombuffer(bare[place : place + PIECE].translate(STEPS), np.int8)
        depths = depth + np.cumsum(steps, dtype=np.int32)
        depth, deepest = int(depths[-1]), max(deepest, int(depths.max()))
    if deepest > DEEPEST:
        raise Wrong("the description", f"nested {deepest} deep", f"at most {DEEPEST} deep")
    values = bare.count(b",") + WEIGHT_OF_LISTS * (bare.count(b"[") + bare.count(b"{"))
    most = MOST_VALUES + len(description) // BYTES_PER_VALUE
    if values > most:
        raise Wrong("the description", f"of {values:,} values", f"of {most:,} at most, for its size")


STEPS = bytes({ord("["): 1, ord("{"): 1, ord("]"): 255, ord("}"): 255}.get(byte, 0) for byte in range(256))
"""What a byte does to the depth; 255 is -1."""

TEXTS = re.compile(rb'"[^"]*"')


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
