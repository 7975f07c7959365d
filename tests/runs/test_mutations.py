"""A run directory that somebody changed, by accident or on purpose, is refused in a moment; nothing in it is run."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from crashes import stop_at
from rich.console import Console
from safetensors.torch import load, save
from samples import RUN_FILES, quick, shapes

from censnet.cli.render_run import run_screen
from censnet.errors import TrainingStopped
from censnet.pipeline import resume_run, train
from censnet.runs import load_run
from censnet.runs.directory import CONFIG, MODEL, dump_with_checksum, load_with_checksum
from censnet.training.checkpoint import load_tensors, save_tensors

MUTATIONS = 500


def flip(folder: Path, rng: random.Random) -> None:
    path = folder / rng.choice(RUN_FILES)
    text = bytearray(path.read_bytes())
    text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
    path.write_bytes(text)


def cut(folder: Path, rng: random.Random) -> None:
    path = folder / rng.choice(RUN_FILES)
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def add(folder: Path, rng: random.Random) -> None:
    path = folder / rng.choice(RUN_FILES)
    text, place = path.read_bytes(), rng.randrange(path.stat().st_size + 1)
    path.write_bytes(text[:place] + rng.randbytes(rng.randint(1, 9)) + text[place:])


def drop(folder: Path, rng: random.Random) -> None:
    (folder / rng.choice(RUN_FILES)).unlink()


def swap(folder: Path, rng: random.Random) -> None:
    one, other = (folder / name for name in rng.sample(RUN_FILES, 2))
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)


def take_from_another(folder: Path, rng: random.Random) -> None:
    name = rng.choice([name for name in RUN_FILES if name not in ("config.json", "schema.json", "splits.csv")])
    shutil.copy(folder.parents[1] / "b" / name, folder / name)


def link(folder: Path, rng: random.Random) -> None:
    path = folder / rng.choice(RUN_FILES)
    elsewhere = folder.parent / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def make_folder(folder: Path, rng: random.Random) -> None:
    path = folder / rng.choice(RUN_FILES)
    path.unlink()
    path.mkdir()


def make_fifo(folder: Path, rng: random.Random) -> None:
    path = folder / rng.choice(RUN_FILES)
    path.unlink()
    os.mkfifo(path)


def reseal(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change config.json as somebody would who knows how it is sealed."""
    config = load_with_checksum((folder / CONFIG).read_bytes(), folder / CONFIG)
    change(config)
    (folder / CONFIG).write_bytes(dump_with_checksum(config))


def reseal_file(folder: Path, name: str, text: bytes) -> None:
    """Change a file and its checksum."""
    (folder / name).write_bytes(text)
    reseal(folder, lambda config: config["files"].update({name: hashlib.sha256(text).hexdigest()}))


PATHS = (
    "../a/model.safetensors", "/etc/passwd", "..", ".", "", "checkpoint/../../secret", "predictions_x.csv", "x" * 10**5,
    "model.safetensors\x00.csv", "predictions\n.csv", "C:\\windows", "~/.ssh/id_rsa", "predictions_../x.csv",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 10**30, 1e308, "", "x" * 10**6, [], [[]] * 1000, {}, {"a": {"b": {}}}, [1, "2", None],
)  # fmt: skip
NETWORKS: dict[str, tuple[Any, ...]] = {
    "layers": ("N" * 10**6, "", "NEX", "E", "NENE", 7),
    "hidden": (0, -8, 9, 2**31, 2**62, 10**30, "8", 1e9, None),
    "heads": (0, 3, 10**9, 2**63),
    "head": ([4], [2**40], [1] * 10**6, [-1], ["a"], [10**30]),
    "kernel": ("os.system", "", "chebyshev", 3),
    "kernel_options": (
        {"steps": -1}, {"steps": 10**12}, {"steps": "many"}, {"__class__": 1}, {"order": 10**9}, {"steps": [1] * 1000},
        {"scales": [10**9]}, {"x" * 10**5: 1}, [1],
    ),
    "norm": ("batch", "eval", 1),
    "activation": ("exec", "", None, 0),
    "variant": ("released", "other"),
    "gate": ("open", 1),
    "self_weight": ("one", "none", 2.5),
    "dropout": (1.0, -0.1, 2, "half"),
    "bias": (False, "no idea", 2),
    "pool": ([], ["max"] * 10, "mean,exec", [None]),
    "latent": (0, -1),
    "decoder": ("outer", 3),
}  # fmt: skip


def hostile_network(folder: Path, rng: random.Random) -> None:
    name = rng.choice(list(NETWORKS))
    value = rng.choice(NETWORKS[name])
    while _is_harmless(name, value):
        value = rng.choice(NETWORKS[name])

    def change(config: dict[str, Any]) -> None:
        model = config["settings"]["model"]
        if name == "kernel_options":
            model["kernel"] = "lanczos" if "scales" in value else "chebyshev" if "order" in value else "pagerank"
        model[name] = value

    reseal(folder, change)


def _is_harmless(name: str, value: Any) -> bool:
    """What describes the same tensors, or nothing that this run has, is believed."""
    harmless = {"hidden": ("8",), "activation": (None,), "pool": (["max"] * 10,), "variant": ("released",)}
    return value in harmless.get(name, ())  # fmt: skip


def hostile_value(folder: Path, rng: random.Random) -> None:
    def change(config: dict[str, Any]) -> None:
        where: Any = config
        name = rng.choice(["format", "settings", "target_specs", "data", "fingerprint", "targets", "link", "node_width",
                           "edge_width", "members", "provenance", "best_epoch", "files"])  # fmt: skip
        if name in ("settings", "provenance") and rng.random() < 0.5:
            where = config[name]
            name = rng.choice(list(where))
        old = where[name]
        where[name] = rng.choice([value for value in VALUES if not _could_be(old, value)])

    reseal(folder, change)


def _could_be(old: Any, value: Any) -> bool:
    """Whether a value would do as well: another text for a text, a number for a number, nothing for a list."""
    if isinstance(old, str):
        return isinstance(value, str)
    if isinstance(old, bool | int | float):
        return isinstance(value, bool | int | float)
    return value in ([], {})


def hostile_number(folder: Path, rng: random.Random) -> None:
    name, value = rng.choice(
        [("members", 10**9), ("members", 10_000), ("members", 2), ("members", 0), ("node_width", 10**18),
         ("node_width", 2**31), ("node_width", 0), ("edge_width", 2**30), ("edge_width", 10**40), ("format", 3)]
    )  # fmt: skip
    reseal(folder, lambda config: config.update({name: value}))


def hostile_path(folder: Path, rng: random.Random) -> None:
    name, digest = rng.choice(PATHS), hashlib.sha256(b"").hexdigest()
    reseal(folder, lambda config: config["files"].update({name: digest}))


def hostile_target(folder: Path, rng: random.Random) -> None:
    change = rng.choice(
        [
            {"level": "graph"}, {"level": "__class__"}, {"classes": []}, {"classes": ["no"]}, {"classes": ["no"] * 2},
            {"kind": "regression"}, {"kind": "multiclass", "classes": [str(n) for n in range(10**5)]}, {"scale": 0},
            {"scale": -1}, {"column": ""}, {"form": "integer"}, {"mean": "far"}, {"extra": 1}, {"kind": "pickle"},
        ]
    )  # fmt: skip
    reseal(folder, lambda config: config["targets"][0].update(change))


def hostile_text(folder: Path, rng: random.Random) -> None:
    """JSON that no writer of ours makes, under a seal that fits."""
    config = json.loads((folder / CONFIG).read_text())
    body = rng.choice(
        [
            '{"a":' * 10**5 + "1" + "}" * 10**5,
            "[" * 10**5 + "]" * 10**5,
            "9" * 10**5,
            "NaN",
            "-Infinity",
            "1e999",
            '"' + "x" * 10**6 + '"',
            '{"a": 1, "a": 2}',
            '"\\ud800"',
            "{,}",
        ]
    )
    name = rng.choice(["settings", "node_width", "files", "members", "seconds"])
    text = json.dumps({**config, "sha256": "0" * 64}, indent=1).replace(f'"{name}":', f'"{name}": {body}, "was":', 1)
    text += "\n"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    (folder / CONFIG).write_bytes(text.replace("0" * 64, digest).encode("utf-8", "surrogatepass"))


def hostile_twice(folder: Path, rng: random.Random) -> None:
    text = (folder / CONFIG).read_text()
    name = rng.choice(["members", "link", "data"])
    line = next(line for line in text.splitlines() if f'"{name}":' in line)
    text = text.replace(line, line + "\n" + line, 1)
    text = text[: text.rindex('"sha256"')] + '"sha256": "' + "0" * 64 + '"\n}\n'
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / CONFIG).write_text(text.replace("0" * 64, digest))


def hostile_file(folder: Path, rng: random.Random) -> None:
    """Another file under a checksum that fits."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path(folder.parent / "executed").touch, ())

    tensors = load((folder / MODEL).read_bytes())
    first = next(name for name in sorted(tensors) if tensors[name].dim() == 2)
    name, text = rng.choice(
        [
            (MODEL, pickle.dumps(Evil())),
            (MODEL, b""),
            (MODEL, (2**63 - 1).to_bytes(8, "little") + b"{}"),
            (MODEL, save({**tensors, first: torch.zeros(1)})),
            (MODEL, save({**tensors, first: tensors[first].double()})),
            (MODEL, save({name: tensor for name, tensor in tensors.items() if name != first})),
            (MODEL, save({name.replace("0/", "1/"): tensor for name, tensor in tensors.items()})),
            ("schema.json", b"[" * 10**5),
            ("schema.json", b'{"version": 9}'),
            ("schema.json", b"{}" * 2),
            ("schema.json", pickle.dumps(Evil())),
            ("metrics.json", b'{"a":' * 10**5),
            ("metrics.json", b'{"test": {"node": {"auc": "high"}}}'),
            ("metrics.json", b"[]"),
            ("history.csv", b'"' + b"\xff" * 100),
            ("history.csv", b"a,b\n1,2,3,4\n5\n6,7,8,9,10,11\n"),
            ("predictions.csv", b'"unclosed\n1,2,3'),
        ]
    )
    reseal_file(folder, name, text)


PLAIN = (flip, flip, flip, flip, cut, add, drop, swap, take_from_another, link, make_folder, make_fifo)
HOSTILE = (hostile_network, hostile_value, hostile_number, hostile_path, hostile_target, hostile_text, hostile_twice,
           hostile_file)  # fmt: skip


@pytest.mark.slow
def test_five_hundred_mutations_of_five_hundred_are_refused(home, tmp_path):
    rng, accepted, slowest, longest = random.Random(0), [], 0.0, 0
    shutil.copytree(home / "b", tmp_path / "b")
    whole = {path.name: path.read_bytes() for path in (home / "a").iterdir()}
    place = tmp_path / "place" / "run"
    for number in range(MUTATIONS):
        shutil.rmtree(place.parent, ignore_errors=True)
        place.mkdir(parents=True)
        for name, text in whole.items():
            (place / name).write_bytes(text)
        mutate = (PLAIN if number % 2 else HOSTILE)[number // 2 % len(PLAIN if number % 2 else HOSTILE)]
        mutate(place, rng)
        started = time.monotonic()
        try:
            load_run(place)
            accepted.append(f"{number}: {mutate.__name__}")
        except ValueError as error:
            longest = max(longest, len(str(error)))
        slowest = max(slowest, time.monotonic() - started)
        assert not (place.parent / "executed").exists()
    assert not accepted
    assert slowest < 5
    assert longest < 2000, "nobody reads a message that long"


def test_nothing_large_is_made_for_a_network_that_is_only_claimed(home, tmp_path):
    folder = Path(shutil.copytree(home / "a", tmp_path / "run"))
    reseal(folder, lambda config: config["settings"]["model"].update(hidden=60_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"model\.safetensors: encoder\.\S+ has shape .* expected"):
        load_run(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # of the 14 GB that it would take


# -- numbers that would spoil every prediction -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a batch norm, and with sums that are divided by the reference size of a graph."""
    place = tmp_path_factory.mktemp("rings") / "run"
    settings = quick(training__epochs=2, model__norm="batch", model__pool=["sum", "mean"])
    train(shapes(), "graph:ring", place, settings=settings)
    return place


@pytest.mark.parametrize(
    ("end", "value", "message"),
    [
        ("weight", float("nan"), r"values that are not finite, such as nan, expected numbers"),
        ("bias", float("-inf"), r"values that are not finite, such as -inf, expected numbers"),
        ("running_mean", float("nan"), r"values that are not finite"),
        ("running_var", -1.0, r"has the value -1\.0, expected 0 or more, as it is a scale"),
        ("reference_size", 0.0, r"has the value 0\.0, expected more than 0, as it is a scale"),
    ],
)
def test_weights_that_are_not_finite_and_scales_of_0_are_refused_and_named(end, value, message, rings, tmp_path):
    folder = Path(shutil.copytree(rings, tmp_path / "run"))
    tensors = load((folder / MODEL).read_bytes())
    name = next(name for name in sorted(tensors) if name.rpartition(".")[2] == end)
    tensors[name].view(-1)[0] = value
    reseal_file(folder, MODEL, save(tensors))
    with pytest.raises(ValueError, match=rf"model\.safetensors: {name}.* {message}"):
        load_run(folder)


@pytest.mark.parametrize(
    ("statistic", "value", "message"),
    [
        ("scale", [0.0], r"scale is 0\.0, expected more than 0"),
        ("scale", [-2.0], r"scale is -2\.0, expected more than 0"),
        ("scale", [], "0 scales and 1 means, expected as many of each"),
        ("scale", [1.0, 1.0], "2 scales and 1 means, expected as many of each"),
        ("mean", [float("nan")], "finite number"),
        ("scale", [float("inf")], "finite number"),
    ],
)
def test_statistics_that_cannot_be_used_are_refused_and_the_column_is_named(statistic, value, message, home, tmp_path):
    folder = Path(shutil.copytree(home / "a", tmp_path / "run"))
    schema = json.loads((folder / "schema.json").read_text())
    column = next(column for column in schema["nodes"]["columns"] if column["name"] == "age")
    column[statistic] = value
    reseal_file(folder, "schema.json", json.dumps(schema).encode())
    where = "column 'age'" if "finite" not in message else "nodes.columns"
    with pytest.raises(ValueError, match=rf"schema\.json.*{where}.*{message}"):
        load_run(folder)


# -- sizes -------------------------------------------------------------------------------------------------------------


def refused_at_once(folder: Path, message: str) -> None:
    """Loading is refused within a second, and takes no memory worth the name."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(ValueError, match=message):
        load_run(folder)
    assert time.monotonic() - started < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.safetensors", r"model\.safetensors has 1,073,741,824 bytes, expected [\d,]+, as its header says"),
        ("config.json", r"config\.json has 1,073,741,824 bytes, expected at most"),
        ("predictions.csv", r"predictions\.csv is not a table: it has a byte of value 0"),
        ("history.csv", r"history\.csv is not a table: it has a byte of value 0"),
        ("schema.json", r"schema\.json has 1,073,741,824 bytes, expected at most"),
        ("metrics.json", r"metrics\.json has 1,073,741,824 bytes, expected at most"),
    ],
)
def test_a_gigabyte_of_nothing_is_refused_before_it_is_read(name, message, home, tmp_path):
    folder = Path(shutil.copytree(home / "a", tmp_path / "run"))
    os.truncate(folder / name, 2**30)
    refused_at_once(folder, message)


@pytest.mark.parametrize(("name", "most"), [("history.csv", 100), ("splits.csv", 100), ("predictions.csv", 100)])
def test_a_table_of_a_million_columns_is_refused_before_it_is_parsed(name, most, home, tmp_path):
    folder = Path(shutil.copytree(home / "a", tmp_path / "run"))
    reseal_file(folder, name, b",".join([b"epoch,loss,learning_rate"] + [b"x"] * 10**6) + b"\n")
    refused_at_once(folder, rf"{name} has (1,000,003 columns|a first line of more than)")


def test_a_history_has_no_more_rows_than_epochs(home, tmp_path):
    folder = Path(shutil.copytree(home / "a", tmp_path / "run"))
    text = (folder / "history.csv").read_bytes()
    reseal_file(folder, "history.csv", text + text.splitlines(keepends=True)[-1] * 10**6)
    refused_at_once(folder, r"history\.csv has 1,000,002 rows, expected at most 2: one an epoch")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [("hidden", 10**9), ("pre_layers", 10**9), ("layers", "N" * 10**6), ("head", [8] * 10**6)],
)
def test_a_network_of_absurd_size_is_refused_before_it_is_built(name, value, home, tmp_path):
    folder = Path(shutil.copytree(home / "a", tmp_path / "run"))
    reseal(folder, lambda config: config["settings"]["model"].update({name: value}))
    refused_at_once(folder, r"model\.safetensors|config\.json")


# -- fields ------------------------------------------------------------------------------------------------------------


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:5]) if isinstance(value, list) else ()
    for name, each in inside:
        yield from _places(each, (*at, name))


def change_a_field(content: Any, rng: random.Random) -> Any:
    """Take a field out, or give it a value of any kind."""
    content = copy.deepcopy(content)
    *home, last = rng.choice(list(_places(content)))
    where = content
    for name in home:
        where = where[name]
    if rng.random() < 0.4:
        del where[last]
    else:
        where[last] = rng.choice([*VALUES, 0, 5, -0.5, 10**9, "number", {"a": 1}])
    return content


def is_refused(read: Callable[[], object]) -> bool:
    """Whether a run is refused; if so, it is in one line that is not too long."""
    try:
        read()
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert len(str(error)) < 1000  # noqa: PT017
        return True
    return False


@pytest.mark.slow
def test_files_without_fields_or_with_others_load_or_are_refused_in_one_line(home, rings, tmp_path):
    rng, folder, refused = random.Random(1), tmp_path / "run", 0
    for number in range(80):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(rings if number % 2 else home / "a", folder)
        name = rng.choice(["schema.json", "metrics.json", CONFIG])
        if name == CONFIG:
            content = load_with_checksum((folder / CONFIG).read_bytes(), folder / CONFIG)
            (folder / CONFIG).write_bytes(dump_with_checksum(change_a_field(content, rng)))
        else:
            content = change_a_field(json.loads((folder / name).read_text()), rng)
            reseal_file(folder, name, json.dumps(content).encode())
        refused += is_refused(lambda: Console(file=io.StringIO()).print(run_screen(load_run(folder))))
    assert refused > 20


@pytest.mark.slow
def test_a_start_and_a_checkpoint_without_fields_go_on_or_are_refused_in_one_line(tmp_path, monkeypatch):
    rng, refused, kept = random.Random(2), 0, tmp_path / "kept"
    with monkeypatch.context() as patch:
        stop_at(patch, 2, "ctrl-c")
        with pytest.raises(TrainingStopped):
            train("karate", "node:faction", kept, settings=quick(training__epochs=2, training__checkpoint_seconds=0))
    for number in range(16):
        folder = tmp_path / str(number)
        shutil.copytree(kept, folder)
        if number % 2:
            place = folder / "checkpoint" / "start.json"
            place.write_bytes(dump_with_checksum(change_a_field(load_with_checksum(place.read_bytes(), place), rng)))
        else:
            place = next((folder / "checkpoint").glob("*.safetensors"))
            tensors, facts = load_tensors(place)
            if number % 4:
                facts = change_a_field(facts, rng)
            else:
                name = rng.choice(list(tensors))
                tensors[name] = torch.zeros(3, 3)
            save_tensors(place, tensors, facts)
        refused += is_refused(lambda folder=folder: resume_run(folder, finish=True))
    assert refused > 5


def test_a_checkpoint_of_a_gigabyte_is_refused_before_it_is_read(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 2, "ctrl-c")
        with pytest.raises(TrainingStopped):
            train("karate", "node:faction", tmp_path / "run", settings=quick(training__epochs=2))
    place = next((tmp_path / "run" / "checkpoint").glob("*.safetensors"))
    os.truncate(place, 2**30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"safetensors cannot be read .*: it is damaged"):
        resume_run(tmp_path / "run")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
