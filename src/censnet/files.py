"""Files that are written whole or not at all, and the SHA-256 of tensors."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from censnet.errors import RunError, WriteError


@contextmanager
def atomic_file(path: Path, *, shared: bool = True, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file to be written under another name, and move it to its own when all is written.

    A reader finds the old file or the new one, never half of it. Links, of that name or of the file's own, are replaced
    and never written through.

    Args:
        path: the file.
        shared: whether other processes may write it at the same time, so that each needs a name of its own.
        durable: whether it must be on the disk before it is moved, to survive a crash of the machine.
    """
    own = f".{uuid.uuid4().hex}" if shared else ""
    partial = path.with_name(f".{path.name}{own}.part")
    try:
        partial.unlink(missing_ok=True)
        with partial.open("xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(partial, path)
        if durable:
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def atomic_write(path: Path, content: bytes) -> None:
    """Write a file of a run, and its folder if need be: after a crash there is the old one or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, shared=False, durable=True) as file:
            file.write(content)
    except OSError as error:
        raise WriteError(path, error, "what it held before is kept" if path.exists() else "") from None


def tensor_digest(tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of tensors with their names, types and shapes.

    >>> one, other = tensor_digest({"a": torch.zeros(2, 3)}), tensor_digest({"a": torch.zeros(3, 2)})
    >>> len(one), one == other
    (64, False)
    """
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor_bytes(tensor))
    return found.hexdigest()


def tensor_bytes(tensor: Tensor) -> memoryview | bytes:
    """The bytes of a dense tensor, without a copy where it is contiguous."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""


def read_regular(path: Path, most: int) -> bytes:
    """Read a regular file of at most so many bytes: a link may lead elsewhere, and a device may have no end."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise RunError(f"{path} has {size:,} bytes, expected at most {most:,}")
        try:
            return file.read(most + 1)
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; a link, a pipe or a device is refused."""
    try:
        if path.is_symlink() or not path.is_file():
            raise RunError(f"{path} is missing or is a link, expected the file that was written")
        return path.open("rb")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
