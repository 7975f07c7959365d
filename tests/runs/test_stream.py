"""A stream gives the answers of `predict`, refuses what it cannot use, and goes on from its state."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.metrics import roc_auc_score

from censnet import load_run, train
from censnet.cli.render_run import scores_screen
from censnet.data.tables.files import Tables
from censnet.errors import ArgumentError, DataError, RunError
from censnet.runs.run import Run
from censnet.runs.stream import ANSWERS, Stream
from censnet.runs.stream_directory import RECORD
from censnet.runs.stream_history import feed_history
from censnet.runs.stream_lines import MAX_RANGES, Numbers
from censnet.runs.stream_saver import StreamSaver

FAST = {"training.epochs": 4, "model.hidden": 8, "data.time": "at", "data.label_delay": "1h"}


def ratings(seed: int = 0, rows: int = 300) -> Tables:
    """Ratings that follow from those that a node got before, with ties, loops and columns of several kinds."""
    generator = np.random.default_rng(seed)
    source, target = generator.integers(0, 30, (2, rows))
    sign = np.where((target % 2 == 0) ^ (generator.random(rows) < 0.05), "good", "bad")
    at = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.sort(generator.integers(0, 200, rows)), unit="h")
    edges = {"source": source, "target": target, "amount": generator.normal(size=rows), "sign": sign, "at": at}
    frame = pd.DataFrame(edges).assign(kind=generator.choice(["a", "b"], rows))
    frame.loc[generator.random(rows) < 0.1, "amount"] = None
    nodes = pd.DataFrame({"id": range(30), "size": generator.normal(size=30)})
    return Tables(nodes, frame)


def edges_of(data: Tables) -> pd.DataFrame:
    assert data.edges is not None
    return data.edges


def lines_of(frame: pd.DataFrame, labels: bool = True) -> list[dict[str, Any]]:
    """Rows as a program would send them, numbered from 1."""
    rows = json.loads(frame.to_json(orient="records", date_format="iso"))
    found = [{"event": number, **row} for number, row in enumerate(rows, 1)]
    return found if labels else [{name: row[name] for name in row if name != "sign"} for row in found]


def nodes_of(data: Tables) -> list[dict[str, Any]]:
    assert data.nodes is not None
    return [{"node": row} for row in json.loads(data.nodes.to_json(orient="records"))]


def check_answers(answers: Any, expected: pd.DataFrame, labels: tuple[str, ...] = ("sign",)) -> None:
    """Every column that `predict` adds, for each row."""
    assert not [answer for answer in answers if "error" in answer]
    columns = [str(name) for name in expected if any(str(name).startswith(f"{label}_") for label in labels)]
    columns += ["unlike_training"]
    found = pd.DataFrame(answers)
    assert set(columns) <= set(found)
    for name in columns:
        if pd.api.types.is_float_dtype(expected[name]):
            np.testing.assert_allclose(found[name].astype(float), expected[name].astype(float), atol=1e-5, rtol=1e-5)
        else:
            alike = found[name].isna() & expected[name].isna() | (found[name] == expected[name])
            assert alike.mean() > 0.99, name  # a number may be written otherwise in its last digit


@pytest.fixture(scope="module")
def data() -> Tables:
    return ratings()


@pytest.fixture(scope="module")
def run(data: Tables, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(data, "edge:sign", tmp_path_factory.mktemp("runs") / "run", settings=FAST)


@pytest.fixture
def stream(run: Run, data: Tables) -> Stream:
    found = run.open_stream()
    for line in nodes_of(data):
        assert found.feed(line) == {"node": str(line["node"]["id"])}
    return found


def test_answers_are_those_of_predict(run: Run, data: Tables, stream: Stream) -> None:
    answers = [stream.feed(line) for line in lines_of(edges_of(data))]
    check_answers(answers, run.predict(data))
    assert [answer["event"] for answer in answers] == list(range(1, 301))
    assert (stream.position.events, stream.position.lines) == (300, 330)


def test_labels_may_come_later_and_early(run: Run, data: Tables, stream: Stream) -> None:
    """A label that comes within the label delay is seen as one that came with its event."""
    answers, waiting = [], list[tuple[pd.Timestamp, dict[str, Any]]]()
    for line, full in zip(lines_of(edges_of(data), labels=False), lines_of(edges_of(data)), strict=True):
        now = pd.Timestamp(full["at"])
        while waiting and waiting[0][0] <= now - pd.Timedelta("30min"):
            assert "error" not in stream.feed(waiting.pop(0)[1])
        answers.append(stream.feed(line))
        waiting.append((now, {"label_of": line["event"], "sign": full["sign"]}))
    check_answers(answers, run.predict(data))


@pytest.mark.parametrize("cut", [1, 120, 250])
def test_history_is_the_same_as_its_events(run: Run, data: Tables, cut: int) -> None:
    frame = edges_of(data)
    past, rest = Tables(data.nodes, frame[:cut]), frame[cut:].reset_index(drop=True)
    expected = run.predict(data)[cut:].reset_index(drop=True)
    stream = run.open_stream(history=past)
    answers = [stream.feed(line) for line in lines_of(frame)[cut:]]
    check_answers(answers, expected)
    assert stream.feed(lines_of(frame)[0])["again"]
    found = run.predict(rest, history=past)
    assert found["source"].tolist() == rest["source"].tolist()
    check_answers(found.to_dict("records"), expected)
    mixed = run.predict(Tables(data.nodes, rest.assign(source=rest["source"].astype(str))), history=past)
    check_answers(mixed.to_dict("records"), expected)


def test_history_without_labels_is_told_later(run: Run, data: Tables) -> None:
    frame = edges_of(data)
    past, rest = frame[:150], lines_of(frame)[150:]
    stream = run.open_stream(history=Tables(data.nodes, past.assign(sign=None)))
    other = run.predict(Tables(data.nodes, frame.assign(sign=None)))
    assert stream.feed(rest[0])["sign_p_good"] == pytest.approx(other["sign_p_good"][150], abs=1e-5)
    for line in lines_of(past):
        assert stream.feed({"label_of": line["event"], "sign": line["sign"]}) == {"label_of": line["event"]}
    assert stream.feed({"label_of": 3, "sign": "bad"}) == {"label_of": 3, "again": True}


def test_new_nodes_and_new_categories_are_fine(run: Run, stream: Stream) -> None:
    line = {"source": "new", "target": 3, "amount": 1.5, "kind": "zebra", "at": "2024-03-01T00:00Z"}
    answer = stream.feed(line)
    assert answer["event"] == 1
    assert "kind is of no category in training" in answer["unlike_training"]
    nodes = pd.DataFrame({"id": ["new", "3"], "size": [None, stream.features[stream.nodes["3"]][0]]})  # type: ignore[index]
    size = run.schema.nodes.columns[0]
    nodes["size"] = nodes["size"] * size.scale[0] + size.mean[0]
    expected = run.predict(Tables(nodes, pd.DataFrame([line]).assign(target="3")))
    assert answer["sign_p_good"] == pytest.approx(expected["sign_p_good"][0], abs=1e-5)


LINE = {"source": 1, "target": 2, "amount": 1.0, "kind": "a", "at": "2024-03-05T00:00:00"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": None}, "column source: is missing, expected the id of a node"),
        ({"target": [1]}, r"column target: has \[1\], expected the id of a node: text or a whole number"),
        ({"at": "soon"}, "column at: 'soon' is no time, expected a number, a date such as 2024-01-31"),
        ({"at": None}, "column at: the time is missing"),
        ({"at": "2024-03-01"}, "column at: 2024-03-01 is before 2024-03-05, the time of the last event: it comes late"),
        ({"amount": "a lot"}, "column amount: 'a lot' is not a finite number"),
        ({"amount": {"a": 1}}, "column amount: .* is not a finite number"),
        ({"event": "x"}, "event is 'x', expected the number of an event: a whole one"),
        ({"event": -1}, "event is -1, expected the number of an event"),
        ({"event": 6}, "event is 6, expected more than 7, that of the last event: numbers rise"),
        ({"sign": [1]}, r"column sign: has \[1\], expected a label"),
        ({"label_of": 99, "sign": "bad"}, "label_of is 99, expected the number of an event that was counted"),
        ({"label_of": 7, "sign": "ugly"}, "column sign: has 'ugly', expected 'bad' or 'good'"),
        ({"label_of": 7}, "the line has no label, expected sign"),
        ({"label_of": "7", "sign": "bad"}, "label_of is '7', expected the number of an event"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_changes_nothing(
    run: Run, stream: Stream, change: dict[str, Any], words: str
) -> None:
    stream.feed({"event": 7, **LINE})
    before = {name: values.copy() for name, values in stream._arrays().items()}
    answer = stream.feed({**LINE, **change})
    assert list(answer)[-1] == "error"
    assert re.search(words, answer["error"]), answer
    assert "\n" not in answer["error"]
    after = stream._arrays()
    assert before.keys() == after.keys()
    assert all((before[name] == after[name]).all() for name in before)
    assert "error" not in stream.feed({"event": 8, **LINE})


@pytest.mark.parametrize("line", [None, 5, "text", [1], {}, {"node": 1}, {"node": {}}, {"node": {"id": 1}}])
def test_what_is_no_line_is_refused(stream: Stream, line: object) -> None:
    assert "error" in stream.feed(line)
    assert stream.position.events == 0


def test_a_column_that_is_missing_is_not_taken_for_unknown(stream: Stream) -> None:
    answer = stream.feed({name: value for name, value in LINE.items() if name != "amount"})
    assert answer["error"].startswith("column amount: is missing, expected a number as in training, or null")
    assert "error" not in stream.feed({**LINE, "amount": None})


def test_events_that_are_fed_again_are_answered_and_not_counted(stream: Stream, data: Tables) -> None:
    lines = lines_of(edges_of(data))[:50]
    first = [stream.feed(line) for line in lines]
    arrays = {name: values.copy() for name, values in stream._arrays().items()}
    again = [stream.feed(line) for line in lines]
    assert again == [{**answer, "again": True} for answer in first]
    assert all((arrays[name] == values).all() for name, values in stream._arrays().items())


def test_old_answers_are_forgotten_and_their_events_still_known(stream: Stream) -> None:
    for _ in range(ANSWERS + 5):
        stream.event(LINE)
    assert stream.feed({"event": 3, **LINE}) == {"event": 3, "again": True}
    assert stream.feed({"event": 6, **LINE})["sign_predicted"] in ("good", "bad")
    assert len(stream.recent) == ANSWERS


def test_a_state_goes_on_to_the_same_answers(run: Run, data: Tables, tmp_path: Path) -> None:
    assert run.path is not None
    lines = [*nodes_of(data), *lines_of(edges_of(data))]
    whole = run.open_stream()
    expected = [whole.feed(line) for line in lines]
    found, at = list[dict[str, Any]](), 0
    for stop in (10, 31, 100, 230, len(lines)):
        stream = load_run(run.path).open_stream(tmp_path / "state")
        assert stream.position.events == max(0, at - 30)
        found += [stream.feed(line) for line in lines[at:stop]]
        stream.save()
        at = stop
    assert found == expected
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["state-5.safetensors", RECORD]


@pytest.mark.skipif(sys.platform != "linux", reason="children that end with their parent are of Linux")
def test_a_state_is_saved_while_the_stream_goes_on(run: Run, data: Tables, tmp_path: Path) -> None:
    lines = [*nodes_of(data), *lines_of(edges_of(data))]
    stream, state = run.open_stream(tmp_path / "state"), tmp_path / "state"
    other = run.open_stream()
    whole = [other.feed(line) for line in lines]
    with StreamSaver(stream, every=1e-9) as saver:
        for line in lines[:100]:
            stream.feed(line)
        saver.save_if_due()
        child = saver._child
        assert child
        for line in lines[100:120]:  # which the child does not see
            stream.feed(line)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        saver._look_at = 0
        saver.save_if_due()
        assert saver._child != child
        assert run.open_stream(state).position.events >= 70
        for line in lines[120:130]:
            stream.feed(line)
    back = run.open_stream(state)  # what is older than the end was ended
    assert back.position.events == 100
    assert [back.feed(line) for line in lines[130:]] == whole[130:]


@pytest.mark.skipif(sys.platform != "linux", reason="children that end with their parent are of Linux")
def test_a_child_that_cannot_save_is_said(run: Run, data: Tables, tmp_path: Path) -> None:
    state = tmp_path / "state"
    stream = run.open_stream(state)
    for line in [*nodes_of(data), *lines_of(edges_of(data))[:20]]:
        stream.feed(line)
    stream.save()
    saver = StreamSaver(stream, every=1e-9)
    shutil.rmtree(state)
    state.write_text("in the way")
    saver.save_if_due()
    os.waitid(os.P_PID, saver._child, os.WEXITED | os.WNOWAIT)
    saver._look_at = 0
    with pytest.raises(RunError, match="is a link or a file, expected a folder for the state"):
        saver.save_if_due()


def test_history_is_fed_once(run: Run, data: Tables, tmp_path: Path) -> None:
    past = Tables(data.nodes, edges_of(data)[:100])
    first = run.open_stream(tmp_path / "state", past)
    assert first.position.event == 100
    second = run.open_stream(tmp_path / "state", past)
    assert (second.position.event, second.history, repr(second)) == (100, "tables", "Stream(100 events, 30 nodes)")
    with pytest.raises(RunError, match="the stream has 100 events, expected none before a history"):
        feed_history(second, past)


def test_numbers_of_a_history_are_those_of_its_column(run: Run, data: Tables) -> None:
    past = edges_of(data)[:100].assign(event=lambda frame: 1000 + frame.index * 2)
    stream = run.open_stream(history=Tables(data.nodes, past.drop(columns="sign").assign(sign=None)))
    assert stream.counted.last == 1198
    assert stream.feed({"label_of": 1002, "sign": "bad"}) == {"label_of": 1002}
    assert "error" in stream.feed({"label_of": 1003, "sign": "bad"})
    with pytest.raises(DataError, match="has a number twice, expected a number for each event"):
        run.open_stream(history=Tables(data.nodes, past.assign(event=1)))
    with pytest.raises(DataError, match=r"row 1, column event: event is 'x', expected the number of an event"):
        run.open_stream(history=Tables(data.nodes, past.assign(event="x")))


def damage_bytes(folder: Path) -> None:
    place = next(folder.glob("*.safetensors"))
    content = bytearray(place.read_bytes())
    content[-5] ^= 1
    place.write_bytes(content)


def cut_arrays(folder: Path) -> None:
    place = next(folder.glob("*.safetensors"))
    place.write_bytes(place.read_bytes()[:-8])


def cut_record(folder: Path) -> None:
    (folder / RECORD).write_bytes((folder / RECORD).read_bytes()[:100])


def link_arrays(folder: Path) -> None:
    place = next(folder.glob("*.safetensors"))
    place.rename(folder.parent / "other")
    place.symlink_to(folder.parent / "other")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_bytes, "is not what was written"),
        (cut_arrays, "has .* bytes, expected"),
        (cut_record, "does not end in its checksum"),
        (link_arrays, "is a link, expected a file that a stream wrote"),
        (lambda folder: next(folder.glob("*.safetensors")).unlink(), "is missing or is a link"),
    ],
)
def test_a_damaged_state_is_refused(run: Run, tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    run.open_stream().save(tmp_path / "state")
    damage(tmp_path / "state")
    with pytest.raises(RunError, match=words):
        run.open_stream(tmp_path / "state")


def test_a_state_of_another_run_is_refused(run: Run, data: Tables, tmp_path: Path) -> None:
    run.open_stream().save(tmp_path / "state")
    other = train(data, "edge:sign", settings=FAST | {"training.epochs": 2})
    with pytest.raises(RunError, match="holds the state of another run: give its run, or choose another state"):
        other.open_stream(tmp_path / "state")
    with pytest.raises(RunError, match="has events with numbers in event, expected seq"):
        run.open_stream(tmp_path / "state", number="seq")


def test_places_that_are_no_state_are_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    for place, words in (("file", "is a link or a file"), ("mine", "holds 'letter.txt', which no stream wrote")):
        with pytest.raises(RunError, match=words):
            run.open_stream().save(tmp_path / place)
    with pytest.raises(RunError, match="the stream has no directory, expected a path"):
        run.open_stream().save()


def test_a_state_outlives_a_threshold(run: Run, data: Tables, tmp_path: Path) -> None:
    stream = run.open_stream(history=data)
    stream.save(tmp_path / "state")
    assert run.path is not None
    again = load_run(run.path)
    again.decide(cost={"fp": 1, "fn": 5})
    assert again.open_stream(tmp_path / "state").position.event == 300


def test_a_history_is_counted_in_the_size_and_must_be_earlier(
    run: Run, data: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    edges = edges_of(data)
    past, rest = Tables(data.nodes, edges[:280]), Tables(data.nodes, edges[280:])
    caplog.set_level("INFO", "censnet")
    run.predict(rest, history=past)
    assert "300 edges" in caplog.text
    assert "give new rows with the history before them" not in caplog.text
    assert "counts twice" not in caplog.text
    run.predict(data, history=past)
    assert (
        "edges of the history are later than the first one of the data: an edge that is in both counts tw"
        in caplog.text
    )


def test_tomorrow_is_scored_as_a_stream_and_without_its_labels(run: Run, data: Tables) -> None:
    edges = edges_of(data)
    past, rest = Tables(data.nodes, edges[:200]), Tables(data.nodes, edges[200:])
    found = run.evaluate(rest, history=past)
    assert {"all", "all_labels_fixed"} <= set(found)
    good = (edges["sign"][200:] == "good").to_numpy()
    blank = Tables(data.nodes, edges[200:].assign(sign=None))
    for part, table in (("all", rest), ("all_labels_fixed", blank)):
        answers = run.predict(table, history=past)["sign_p_good"].to_numpy()
        assert found[part]["edge"]["auc"] == pytest.approx(roc_auc_score(good, answers), abs=1e-3)
    assert found["all"]["edge"]["log_loss"] != found["all_labels_fixed"]["edge"]["log_loss"]
    assert "all_labels_fixed: with none of these data" in screen_text(run, found)
    alone = run.evaluate(rest)  # without a history, which later edges lack
    assert alone["all"]["edge"]["log_loss"] not in (found["all"]["edge"]["log_loss"], None)


def screen_text(run: Run, scores: Any) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(scores_screen(run, scores))
    return console.export_text()


def test_an_ensemble_and_a_number_are_streamed_with_intervals(data: Tables) -> None:
    settings = FAST | {"training.epochs": 2, "model.decay_rates": 2, "data.label_delay": 0}
    settings["model.clip_to_label_range"] = True
    run = train(data, ["edge:amount"], settings=settings, ensemble=2, overrides={"sign": "category"})
    stream = run.open_stream(coverage=0.7)
    for line in nodes_of(data):
        stream.feed(line)
    answers = [stream.feed(line) for line in lines_of(edges_of(data))]
    expected = run.predict(data, coverage=0.7)
    assert {"amount_std", "amount_low", "amount_raw", "amount_clipped"} <= set(expected)
    check_answers(answers, expected, ("amount",))
    mine = run.open_stream(history=Tables(data.nodes, edges_of(data)[:200]), coverage=0.7)
    check_answers(
        [mine.feed(line) for line in lines_of(edges_of(data))[200:]], expected[200:].reset_index(), ("amount",)
    )


def test_edges_alone_and_fields_of_other_names(data: Tables) -> None:
    names = {"source": "payer", "target": "payee", "at": "event"}
    frame = edges_of(data).drop(columns=["amount", "kind"]).rename(columns=names)
    roles = {"payer": "source", "payee": "target"}
    settings = {name: value for name, value in FAST.items() if name != "data.time"}
    run = train(frame, "edge:sign", time="event", settings=settings | {"training.epochs": 1}, overrides=roles)
    with pytest.raises(
        ArgumentError, match="event is a column of the edges, and a field of lines of its own: give numb"
    ):
        run.open_stream()
    stream = run.open_stream(number="seq")
    rows = json.loads(frame.to_json(orient="records", date_format="iso"))
    answers = [stream.feed({"seq": number, **row}) for number, row in enumerate(rows)]
    check_answers(answers, run.predict(frame))
    assert answers[5]["seq"] == 5


def test_other_runs_cannot_be_streamed(data: Tables) -> None:
    run = train(data, "edge:sign", settings={"training.epochs": 1, "model.hidden": 8})
    with pytest.raises(RunError, match="the run has no causal layers, expected a model of edges"):
        run.open_stream()
    with pytest.raises(RunError, match="history is given, expected none: the run has no causal layers"):
        run.predict(data, history=data)


def test_numbers_are_ranges_and_few() -> None:
    numbers = Numbers()
    for number in range(0, 3 * MAX_RANGES, 2):
        numbers.add(number)
    assert len(numbers.ranges) == MAX_RANGES
    assert 3 in numbers
    assert 3 * MAX_RANGES - 3 not in numbers
    assert numbers.last == 3 * MAX_RANGES - 2
