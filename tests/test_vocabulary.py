"""The field's words: private ones that were once here do not come back, as names, as settings or in prose."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from censnet.settings import Settings

ROOT = Path(__file__).parents[1]
CODE = [path for folder in ("src", "tests", "benchmarks", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
CODE = [path for path in CODE if path != Path(__file__)]
PROSE = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PROSE = [path for path in PROSE if "_build" not in path.parts]

# A private word -> the field's
NAMES = {
    "Lesson": "TaskData",
    "Learner": "Model",
    "Judge": "Evaluator",
    "Mark": "ValidationScore",
    "Listener": "Callback",
    "Voice": "ConsoleHandler",
    "Board": "TensorBoardCallback",
    "Try": "Candidate",
    "Tried": "SelectionRecord",
    "Choice": "Selection",
    "Made": "Provenance",
    "Asked": "TargetSpec",
    "WholeGraph": "FullBatch",
    "HiddenLinks": "MaskedLinkBatch",
    "ManyGraphs": "GraphBatches",
    "PartsOfGraph": "SampledSubgraphs",
    "LinkDraw": "LinkSampler",
    "PairTask": "PairDecoder",
    "PairSides": "PairInputs",
    "LinkTask": "VariationalDecoder",
    "RowTask": "RowHead",
    "GraphTask": "GraphHead",
    "LinkView": "LinkInputs",
    "PairSpace": "NodePairs",
    "TwoSided": "NodePairs",
    "PairNumbers": "NodePairs",
    "Numbering": "IdIndex",
    "Numbered": "ResolvedIds",
    "Problems": "RowErrors",
    "Palette": "DictionaryRows",
    "Elsewhere": "External",
    "Contender": "MethodScores",
    "LeftError": "TrainingInterrupted",
    "StoppedError": "TrainingStopped",
    "Whole": "IntArray",
}
PARTS = {  # how a word in a name begins
    "guess": "pseudo_label",
    "taught": "labeled",
    "lesson": "task_data",
    "learner": "model",
    "listener": "callback",
    "giveaway": "leakage",
    "stand_in": "default_features",
    "side_by_side": "batched",
    "at_rest": "frozen",
    "hush": "zero_grad",
    "shelve": "to_tensors",
    "neighbour": "neighbor",
    "colour": "color",
    "optimis": "optimiz",
    "normalis": "normaliz",
    "initialis": "initializ",
    "summaris": "summariz",
    "labelled": "labeled",
}
SETTINGS = {
    "lift": "pre_layers",
    "lift_edges": "edge_pre_layer",
    "readers": "gate_init",
    "linear_end": "last_layer_is_head",
    "within": "clip_to_label_range",
    "read_ends": "edge_head_reads_nodes",
    "walks": "diffusion_steps",
    "pool_over": "pool_from",
    "averaging": "ema_decay",
    "warm_up": "warmup",
    "clip": "max_grad_norm",
    "penalty": "lp_penalty",
    "penalty_power": "lp_power",
    "epoch_steps": "max_steps_per_epoch",
    "unlabelled": "pseudo_label_weights",
    "rounds": "self_training_rounds",
    "labels": "recipe",
    "mask": "edge_mask_ratio",
    "negatives": "negative_ratio",
    "weight_decay_of": "weight_decay_by_name",
}
PHRASES = {
    r"guess(es|ed|ing)?": "pseudo-labels",
    r"taught": "trained on labels from",
    r"(gates )?at rest": "frozen",
    r"gives? (it|them)sel(f|ves) away": "leaks",
    r"as sure as (it is|they are) right": "calibrated",
    r"afresh": "re-initialized",
    r"side by side": "batched",
    r"who has no label": "nodes without a label",
    r"neighbours?": "neighbor",
    r"learnt": "learned",
    r"labelled|unlabelled": "labeled, unlabeled",
}


@cache
def private_words(name: str) -> list[str]:
    """What is wrong with a name, if anything."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    found = [f"{name}: {word} is {PARTS[word]}" for word in PARTS if re.search(rf"(^|_){word}", snake)]
    return found + ([f"{name} is {NAMES[name]}"] if name in NAMES else [])


@pytest.mark.slow
def test_names_are_the_field_s() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{token.start[0]}: {word}"
        for path in CODE
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.NAME
        for word in private_words(token.string)
    ]
    assert found == []


def test_a_private_word_is_seen() -> None:
    assert private_words("Lesson") == ["Lesson: lesson is task_data", "Lesson is TaskData"]
    assert private_words("best_guesses") == ["best_guesses: guess is pseudo_label"]
    assert private_words("task_data") == []


def test_settings_are_the_field_s() -> None:
    known = {
        name for section in ("model", "training", "data") for name in type(getattr(Settings(), section)).model_fields
    }
    assert not known & SETTINGS.keys()
    assert set(SETTINGS.values()) <= known


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_use_the_field_s_words(path: Path) -> None:
    text = path.read_text()
    found = {f"{match[0]}: {new}" for old, new in PHRASES.items() for match in re.finditer(rf"\b({old})\b", text)}
    assert not found, sorted(found)
