"""`censnet stream` as a person types it: a line in, a line out, and a state that goes on."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run, succeed
from typer.testing import CliRunner, Result

from censnet.cli.app import app
from censnet.cli.stream import LONGEST, answer_line, feed_lines
from censnet.runs import load_run

SMALL = ["--set", "model.hidden=8", "--set", "training.epochs=2", "--quiet"]


def make_orders(folder: Path) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    orders = pd.DataFrame({"source": generator.integers(0, 20, 200), "target": 20 + generator.integers(0, 9, 200)})
    orders["at"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.sort(generator.integers(0, 9000, 200)), unit="min")
    orders["eur"] = generator.gamma(2, 30, 200).round(2)
    orders["back"] = generator.choice(["yes", "no"], 200)
    folder.mkdir()
    orders.to_csv(folder / "edges.csv", index=False)
    return orders


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("stream")
    orders = make_orders(home / "orders")
    for name, rows in (("past", orders[:150]), ("rest", orders[150:])):
        (home / name).mkdir()
        rows.to_csv(home / name / "edges.csv", index=False)
    succeed("train", home / "orders", "--target", "edge:back", "--time", "at", "--out", home / "run", *SMALL)
    return home


def lines_of(home: Path, table: str = "orders", start: int = 1) -> list[str]:
    frame = pd.read_csv(home / table / "edges.csv")
    rows = json.loads(frame.to_json(orient="records"))
    return [json.dumps({"event": number, **row}) for number, row in enumerate(rows, start)]


def stream(home: Path, lines: list[str], *options: str | Path) -> Result:
    arguments = ["stream", str(home / "run"), *map(str, options)]
    return CliRunner().invoke(app, arguments, "".join(f"{line}\n" for line in lines), env={"COLUMNS": "300"})


def answers(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def check(found: Any, expected: pd.DataFrame) -> None:
    assert [answer["back_predicted"] for answer in found] == expected["back_predicted"].tolist()
    for name in ("back_p_yes", "back_p_no"):
        np.testing.assert_allclose([answer[name] for answer in found], expected[name], atol=1e-5)


def test_answers_are_those_of_predict(home: Path) -> None:
    result = stream(home, lines_of(home))
    assert "the stream is empty" in result.stderr
    whole = pd.read_csv(io.StringIO(succeed("predict", home / "run", home / "orders").stdout))
    check(answers(result), whole)
    rest = succeed("predict", home / "run", home / "rest", "--history", home / "past")
    check(pd.read_csv(io.StringIO(rest.stdout)).to_dict("records"), whole[150:])
    later = stream(home, lines_of(home, "rest", 151), "--history", home / "past")
    check(answers(later), whole[150:])
    assert "has 150 events, the last with number 150 at 2024-03-0" in later.stderr


def test_a_stream_goes_on_where_its_state_stands(home: Path, tmp_path: Path) -> None:
    lines, state = lines_of(home), tmp_path / "state"
    whole = answers(stream(home, lines))
    first = stream(home, lines[:80], "--state", state, "--save-every", "0")
    second = stream(home, lines[60:], "--state", state)
    assert "holds 80 events, the last with number 80 at 2024-03-0" in second.stderr
    found = [*answers(first), *answers(second)]
    assert found == [*whole[:80], *({**answer, "again": True} for answer in whole[60:80]), *whole[80:]]


def test_history_is_in_the_state(home: Path, tmp_path: Path) -> None:
    options: list[str | Path] = ["--state", tmp_path / "state", "--history", home / "past"]
    rest = lines_of(home, "rest", 151)
    whole = answers(stream(home, rest[:10], *options))
    again = stream(home, rest, *options)
    assert "holds 160 events, the last with number 160" in again.stderr
    assert [answer["event"] for answer in answers(again)[10:]] == list(range(161, 201))
    assert answers(again)[:10] == [{**answer, "again": True} for answer in whole]


GOOD = '{"source": 1, "target": 22, "at": "2024-03-01T10:00", "eur": 5}'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (GOOD[:30], "line 2 is no JSON object: "),
        ("\x1b[2J", "line 2 is no JSON object: "),
        ("[" * 100_000, "line 2 is no JSON object: it is nested too deep"),
        ('{"source": "' + "x" * LONGEST + '"}', "line 2 is no JSON object: it has more than 1,048,576 bytes"),
        ('{"eur": ' + "9" * 5000 + "}", "line 2 is no JSON object: "),
        ("7", "the line is 7, expected an object"),
        (GOOD.replace('"source": 1, ', ""), "column source: is missing, expected the id of a node"),
        (GOOD.replace("2024-03-01T10:00", "soon"), "column at: 'soon' is no time"),
        (GOOD.replace("2024", "2023"), "column at: 2023-03-01 10:00 is before 2024-03-01 10:00, the time of the last"),
        (GOOD.replace("5}", '"\x07"}'), "line 2 is no JSON object"),
        (GOOD.replace("5}", '"\\u001b[2J"}'), "column eur: '\\x1b[2J' is not a finite number"),
    ],
)
def test_a_line_that_cannot_be_used_has_an_answer_that_says_why(home: Path, line: str, words: str) -> None:
    result = stream(home, [GOOD, line, "  ", GOOD])
    found = answers(result)
    assert len(found) == 3
    assert words in found[1]["error"]
    assert (found[0]["event"], found[2]["event"]) == (1, 2)
    assert "\x1b" not in result.stdout
    assert "1 line could not be used" in result.stderr
    strict = stream(home, [GOOD, line, GOOD], "--strict")
    assert strict.exit_code == 2
    assert len(strict.stdout.splitlines()) == 1
    assert "error: line 2" in strict.stderr.replace("\n", " ")


def test_bytes_that_are_no_text_and_half_a_line_at_the_end(home: Path, tmp_path: Path) -> None:
    source, target = io.BytesIO(b'{"source": "\xff\xfe"}\n' + GOOD.encode() + b"\n" + GOOD.encode()[:20]), io.BytesIO()
    fed = load_run(home / "run").open_stream(tmp_path / "state")
    assert feed_lines(fed, source, target) == 2
    found = [json.loads(line) for line in target.getvalue().splitlines()]
    assert [("error" in answer) for answer in found] == [True, False, True]
    assert load_run(home / "run").open_stream(tmp_path / "state").position.events == 1


def test_a_byte_order_mark_is_no_part_of_a_line(home: Path) -> None:
    (found,) = answers(stream(home, ["\ufeff" + GOOD]))
    assert found["event"] == 1


def test_labels_and_nodes_are_lines_of_their_own(home: Path) -> None:
    told = [GOOD, '{"label_of": 1, "back": "yes"}', '{"label_of": 9, "back": "yes"}', '{"node": {"id": "new"}}']
    found = answers(stream(home, told))
    assert found[1:] == [
        {"label_of": 1},
        {"label_of": 9, "error": "label_of is 9, expected the number of an event that was counted"},
        {"node": "new"},
    ]


def test_what_cannot_begin_is_one_line(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for options, words in (
        (["--state", tmp_path / "mine"], "holds 'letter.txt', which no stream wrote"),
        (["--state", tmp_path / "link"], "is a link or a file, expected a folder"),
        (["--number", "eur"], "eur is a column of the edges, and a field of lines of its own: give --number another"),
        (["--history", tmp_path / "none"], "there is no such file, folder or data set"),
        (["--coverage", "2"], "--coverage is 2, expected more than 0 and less than 1"),
    ):
        result = stream(home, [GOOD], *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr.replace("\n", " ")
    assert run("stream", tmp_path / "nothing").exit_code == 2


def command(home: Path, *options: str | Path) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "censnet", "stream", str(home / "run"), *map(str, options)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(arguments, env={**os.environ, "OMP_NUM_THREADS": "1"}, **pipes)  # type: ignore[call-overload, no-any-return]


def test_each_answer_comes_at_once_and_sigterm_saves(home: Path, tmp_path: Path) -> None:
    state, lines = tmp_path / "state", lines_of(home)
    with command(home, "--state", state) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(1, 4):
            process.stdin.write(lines[number - 1].encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["event"] == number  # while stdin is open
        other = stream(home, lines, "--state", state)
        assert "is the state of a stream that runs: stop that" in other.stderr.replace("\n", " ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert load_run(home / "run").open_stream(state).position.event == 3


def test_nobody_reads(home: Path, tmp_path: Path) -> None:
    fed = load_run(home / "run").open_stream(tmp_path / "state")
    source, target = os.pipe()
    os.close(source)
    kept = os.dup(1)
    try:
        with os.fdopen(target, "wb", 0) as closed:
            assert feed_lines(fed, io.BytesIO(GOOD.encode() * 2), closed) >= 0
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert answer_line(fed, b"null")["error"].startswith("the line is None")
