"""PyTorch Geometric's objects: masks, edge_index, x, edge_attr and y of every shape and dtype, batches and lists."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from hostile.accepted import sound
from hostile.place import Place, Refusal, heard

N = 40
MASKS = ("train_mask", "val_mask", "test_mask")
DTYPES = {"bool": torch.bool, "uint8": torch.uint8, "int64": torch.int64, "float": torch.float32}


def graph(nodes: int = N, **more: Any) -> Data:
    """A ring with chords, each edge once, x, edge_attr and y."""
    ring = torch.arange(nodes)
    ends = torch.stack([torch.cat([ring, ring]), torch.cat([(ring + 1) % nodes, (ring + 5) % nodes])])
    noise = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(nodes, 4, generator=noise),
        edge_index=ends,
        edge_attr=torch.randn(2 * nodes, 3, generator=noise),
        y=ring % 2,
    )
    for name, value in more.items():
        if value is ...:
            del data[name]
        else:
            data[name] = value
    return data


def parts() -> dict[str, Tensor]:
    """Training rows are the first, then validation, then test; the last four are in none."""
    row = torch.arange(N)
    return {"train_mask": row < 12, "val_mask": (row >= 12) & (row < 18), "test_mask": (row >= 18) & (row < 36)}


def checks() -> Iterator[tuple[str, Callable[[Place], None]]]:
    """Masks in every combination, then each attribute in every form."""
    for count in (1, 2, 3):
        for given in itertools.combinations(MASKS, count):
            for dtype in DTYPES:
                yield f"masks-{'-'.join(given)}-{dtype}", partial(_masks, given, dtype, "flat")
            for shape in SHAPES:
                yield f"masks-{'-'.join(given)}-{shape}", partial(_masks, given, "bool", shape)
    for name, values in ATTRIBUTES.items():
        for form, (value, verdict) in values.items():
            yield f"{name}-{form}", partial(_attribute, name, value, verdict)
    for form, value in LABELS.items():
        yield f"y-{form}", partial(_labels, value)
    for name, (make, verdict) in OBJECTS.items():
        yield f"object-{name}", partial(_object, make, verdict)
    for given in ("train_mask", "test_mask"):
        for shape in ("flat", "short"):
            yield f"list-of-graphs-{given}-{shape}", partial(_list_masks, given, shape)


SHAPES = (
    "column",
    "several",
    "short",
    "long",
    "overlap",
    "none-true",
    "all-true",
    "empty",
    "scalar",
    "list",
    "numpy",
    "index",
)


def _shaped(mask: Tensor, shape: str) -> Any:
    made: dict[str, Callable[[], Any]] = {
        "flat": lambda: mask, "column": lambda: mask.unsqueeze(1), "short": lambda: mask[:-1],
        "several": lambda: torch.stack([mask, mask.roll(3), mask.roll(7)], 1),
        "long": lambda: torch.cat([mask, mask[:1]]),
        "overlap": lambda: mask | (torch.arange(N) < 20), "none-true": lambda: torch.zeros_like(mask),
        "all-true": lambda: torch.ones_like(mask), "empty": lambda: mask[:0], "scalar": lambda: torch.tensor(True),
        "list": lambda: mask.tolist(), "numpy": lambda: mask.numpy(), "index": lambda: mask.nonzero().squeeze(1),
    }  # fmt: skip
    return made[shape]()


def _masks(given: tuple[str, ...], dtype: str, shape: str, place: Place) -> None:
    """A row under validation or test is never trained on, a row that is not under train_mask neither; or a line."""
    masks = parts()
    data = graph(**{name: _shaped(masks[name].to(DTYPES[dtype]), shape) for name in given})
    with heard() as lines:
        made = place.prepare("node:y", data)
    if isinstance(made, Refusal):
        assert "mask" in made or "for training" in made, f"the mask is not named: {made}"
        fine = shape in ("flat", "column", "numpy", "list") and "train_mask" in given and dtype in ("bool", "uint8")
        assert not fine, f"plain masks were refused: {made}"
        return
    assert shape not in ("short", "long", "empty", "scalar"), f"masks of a wrong length ({shape}) are taken"
    assert shape != "several", "masks of several splits are taken without a choice"
    overlapping = shape == "overlap" and len(given) > 1
    assert not overlapping, "rows are under two masks, and nothing says so"
    codes = torch.as_tensor(made.splits["node"].codes(N))
    if shape in ("flat", "column", "list", "numpy", "overlap"):
        given_masks = {name: torch.as_tensor(np.asarray(data[name])).reshape(-1).bool() for name in given}
        if "train_mask" in given:
            wrong = (codes == 0) & ~given_masks["train_mask"]
            assert not bool(wrong.any()), f"{int(wrong.sum())} rows outside train_mask are trained on"
        for name, code in (("val_mask", 1), ("test_mask", 2)):
            if name in given:
                wrong = (codes == 0) & given_masks[name]
                assert not bool(wrong.any()), f"{int(wrong.sum())} rows under {name} are trained on"
                other = given_masks[name] & (codes != code)
                assert not bool(other.any()), f"{int(other.sum())} rows under {name} are not in that part"
    del lines


X, EDGES = torch.ones(N, 4), torch.ones(2 * N, 3)
RING = graph().edge_index
TWICE = torch.cat([RING, RING.flip(0)], 1)
# form -> the value, and "used", "refused" or "either"
ATTRIBUTES: dict[str, dict[str, tuple[Any, str]]] = {
    "x": {
        "none": (None, "absent"), "missing": (..., "absent"), "numpy": (X.numpy(), "either"),
        "list": (X.tolist(), "either"),
        "complex": (X.to(torch.complex64), "refused"), "half": (X.half(), "used"), "bfloat16": (X.bfloat16(), "used"),
        "double": (X.double(), "used"), "int": (X.long(), "used"), "bool": (X.bool(), "used"),
        "uint8": (X.byte(), "used"),
        "flat": (X[:, 0], "used"), "cube": (torch.ones(N, 2, 2), "either"), "short": (X[:-1], "refused"),
        "long": (torch.ones(N + 1, 4), "either"), "no-columns": (X[:, :0], "either"), "no-rows": (X[:0], "refused"),
        "sparse": (torch.eye(N).to_sparse(), "used"), "sparse-csr": (torch.eye(N).to_sparse_csr(), "used"),
        "nan": (torch.full((N, 4), torch.nan), "either"),
        "one-nan": (X.masked_fill(torch.arange(N)[:, None] == 3, torch.nan), "either"),
        "infinite": (X.masked_fill(torch.arange(N)[:, None] == 3, torch.inf), "either"),
        "gradient": (X.clone().requires_grad_(), "used"),
        "transposed": (X.t(), "refused"), "scalar": (torch.tensor(1.0), "refused"), "text": ("x", "refused"),
        "number": (3, "refused"),
        "texts": (["a"] * N, "either"), "not-contiguous": (torch.ones(4, N).t(), "used"), "huge": (X * 1e38, "either"),
        "wide": (torch.ones(N, 3000), "used"),
    },
    "edge_attr": {
        "none": (None, "absent"), "missing": (..., "absent"), "numpy": (EDGES.numpy(), "either"),
        "list": (EDGES.tolist(), "either"),
        "complex": (EDGES.to(torch.complex64), "refused"), "half": (EDGES.half(), "used"),
        "int": (EDGES.long(), "used"), "bool": (EDGES.bool(), "used"),
        "flat": (EDGES[:, 0], "used"), "cube": (torch.ones(2 * N, 2, 2), "either"), "short": (EDGES[:-1], "refused"),
        "half-as-many": (EDGES[:N], "refused"), "twice-as-many": (torch.ones(4 * N, 3), "refused"),
        "no-columns": (EDGES[:, :0], "either"),
        "no-rows": (EDGES[:0], "refused"), "sparse": (EDGES.to_sparse(), "either"),
        "nan": (EDGES * torch.nan, "either"),
        "scalar": (torch.tensor(1.0), "refused"), "text": ("x", "refused"), "transposed": (EDGES.t(), "refused"),
        "texts": (["a"] * 2 * N, "either"),
    },
    "edge_index": {
        "transposed": (RING.t(), "refused"), "flat": (RING[0], "refused"),
        "three": (torch.cat([RING, RING[:1]]), "refused"), "one": (RING[:1], "refused"),
        "float": (RING.float(), "either"), "int32": (RING.int(), "used"), "bool": (RING.bool(), "refused"),
        "negative": (RING - 1, "either"),
        "out-of-range": (RING + 1, "either"), "far-out": (RING + 10**6, "refused"), "empty": (RING[:, :0], "either"),
        "numpy": (RING.numpy(), "either"),
        "list": (RING.tolist(), "either"), "none": (None, "either"), "missing": (..., "either"),
        "cube": (RING.unsqueeze(0), "refused"),
        "scalar": (torch.tensor(3), "refused"), "halves": (RING.float() + 0.5, "refused"),
        "nan": (RING.float() * torch.nan, "refused"),
        "sparse": (torch.eye(N).to_sparse(), "refused"), "dense-adjacency": (torch.eye(N).long(), "refused"),
        "text": ("x", "refused"),
        "two-edges": (torch.tensor([[0, 1], [1, 2]]), "either"), "huge-numbers": (RING + 2**60, "refused"),
    },
}  # fmt: skip


def _attribute(name: str, value: Any, verdict: str, place: Place) -> None:
    """What is given is used or refused with its name and shape; it is never dropped without a word."""
    more: dict[str, Any] = {name: value}
    if name == "edge_index":
        more["edge_attr"] = ...
    data = graph(**more)
    with heard() as lines:
        found = place.load(data, target="node:y")
    if isinstance(found, Refusal):
        assert verdict in ("refused", "either"), f"a valid {name} was refused: {found}"
        assert name in found or (name == "edge_index" and "source" in found), f"{name} is not named: {found}"
        shape = getattr(value, "shape", None)
        wrong_shape = verdict == "refused" and isinstance(value, Tensor) and value.dim() > 1 and not value.is_sparse
        if wrong_shape and shape is not None and not value.is_complex():
            stated = any(str(size) in found.replace(",", "") for size in shape)
            assert stated or "dtype" in found or "ids" in found, f"no size is stated: {found}"
        return
    assert verdict != "refused", f"a {name} that fits nothing was taken: {found.graph}"
    sound(found)
    if name == "edge_index" and isinstance(value, Tensor | np.ndarray):
        assert len(found.rows("edge")) == value.shape[1], f"{len(found.rows('edge'))} edges of {value.shape[1]}"
        return
    if name == "edge_index":
        return
    schema = found.schema.table("nodes" if name == "x" else "edges")
    known = {one.name: one for one in [*schema.columns, *schema.left_out]}
    notes = " ".join([*found.notes, *lines])
    assert verdict == "absent" or name in known or name in notes, f"{name} was dropped without a word"
    if verdict == "used":
        assert name in known, f"{name} is not used"
        width = 1 if value.dim() == 1 else value.shape[1]
        total = found.graph.node_width if name == "x" else found.graph.edge_width
        constant = name in {one.name for one in schema.left_out}
        assert constant or total >= min(width, 1), f"{name} has {width} columns and became {total}"


Y = torch.arange(N) % 2
LABELS: dict[str, Any] = {
    "int": Y, "int32": Y.int(), "bool": Y.bool(), "float-classes": Y.float(), "float": torch.arange(N) / 3,
    "column": Y.unsqueeze(1), "two-columns": torch.stack([Y, 1 - Y], 1),
    "many-columns": torch.rand(N, 5), "short": Y[:-1], "long": torch.cat([Y, Y[:1]]),
    "nan": torch.full((N,), torch.nan), "some-nan": torch.where(torch.arange(N) % 7 == 3, torch.nan, Y.float()),
    "minus-one": Y - 1, "complex": Y.to(torch.complex64), "one-class": torch.zeros(N, dtype=torch.long),
    "texts": ["ab"[int(k)] for k in Y], "list": Y.tolist(), "numpy": Y.numpy(),
    "none": None, "scalar": torch.tensor(1), "text": "y", "cube": torch.ones(N, 2, 2), "sparse": Y.float().to_sparse(),
    "infinite": torch.where(torch.arange(N) == 3, torch.inf, torch.arange(N) / 3),
    "huge-int": Y * 2**60, "half": Y.half(), "missing": ..., "one-hot": torch.nn.functional.one_hot(Y),
}  # fmt: skip


def _labels(value: Any, place: Place) -> None:
    """Learnt with a row for each label, or refused with the name of the target."""
    made = place.prepare("node:y", graph(y=value))
    if isinstance(made, Refusal):
        assert "y" in made.replace(":", " ").replace(",", " ").split() or "y " in made, f"y is not named: {made}"
        assert value is not Y, f"refused: {made}"
        return
    sound(made.data)
    assert isinstance(value, Tensor | list | np.ndarray), f"{value!r} was learnt from"
    length = len(value)
    assert length == N, f"y of {length} rows is taken for {N} nodes"
    words = isinstance(value, list) and isinstance(value[0], str)
    labels = Y if words else value if isinstance(value, Tensor) else torch.as_tensor(np.asarray(value))
    labeled = int((~labels.to_dense().float().reshape(N, -1).isnan()).any(1).sum())
    rows = sum(len(part) for part in made.splits["node"].parts.values())
    assert rows == labeled, f"{rows} rows are in the parts, {labeled} have a label"


def _several(**more: Any) -> list[Data]:
    return [graph(8 + number, y=torch.tensor([number % 2]), **more) for number in range(10)]


def _shuffled(batch: Batch) -> Batch:
    batch.batch = batch.batch.flip(0)
    return batch


# name -> the object and its target, and whether it is "fine", "refused" or "either"
OBJECTS: dict[str, tuple[Callable[[], tuple[Any, str]], str]] = {
    "plain": (lambda: (graph(), "node:y"), "fine"),
    "batch": (lambda: (Batch.from_data_list(_several()), "graph:y"), "fine"),
    "list": (lambda: (_several(), "graph:y"), "fine"),
    "tuple": (lambda: (tuple(_several()), "graph:y"), "fine"),
    "list-of-one": (lambda: (_several()[:1], "graph:y"), "either"),
    "empty-list": (lambda: ([], "graph:y"), "refused"),
    "list-with-none": (lambda: ([*_several(), None], "graph:y"), "refused"),
    "list-with-text": (lambda: ([*_several(), "x"], "graph:y"), "refused"),
    "list-of-batches": (lambda: ([Batch.from_data_list(_several())], "graph:y"), "either"),
    "list-of-lists": (lambda: ([_several()], "graph:y"), "refused"),
    "other-attributes": (lambda: ([*_several(), graph(8)], "graph:y"), "either"),
    "lacking-x": (lambda: ([*_several(), graph(8, x=..., y=torch.tensor([1]))], "graph:y"), "refused"),
    "other-width": (lambda: ([*_several(), graph(8, x=torch.ones(8, 5), y=torch.tensor([1]))], "graph:y"), "refused"),
    "hetero": (lambda: (HeteroData(), "node:y"), "refused"),
    "empty-data": (lambda: (Data(), "node:y"), "refused"),
    "no-nodes": (lambda: (Data(x=torch.ones(0, 3), edge_index=RING[:, :0]), "node:y"), "refused"),

    "one-node": (lambda: (Data(x=torch.ones(1, 3), y=torch.tensor([1])), "node:y"), "refused"),
    "no-x-no-count": (lambda: (Data(edge_index=RING, y=Y), "node:y"), "fine"),
    "isolated": (lambda: (Data(edge_index=RING[:, :10], y=Y, num_nodes=N), "node:y"), "fine"),
    "too-few-nodes": (lambda: (Data(edge_index=RING, y=Y, num_nodes=3), "node:y"), "refused"),
    "batch-out-of-order": (lambda: (_shuffled(Batch.from_data_list(_several())), "graph:y"), "either"),
    "batch-vector": (lambda: (graph(batch=torch.arange(N) // 10), "node:y"), "either"),
    "loops": (lambda: (graph(edge_index=torch.stack([torch.arange(N)] * 2), edge_attr=...), "node:y"), "fine"),
    "parallel": (lambda: (graph(edge_index=torch.cat([RING, RING], 1), edge_attr=...), "node:y"), "fine"),
    "both-ways": (lambda: (graph(edge_index=TWICE, edge_attr=torch.cat([EDGES, EDGES])), "node:y"), "fine"),

    "edge-target": (lambda: (graph(edge_label=torch.arange(2 * N) % 2), "edge:edge_label"), "fine"),
    "edge-target-short": (lambda: (graph(edge_label=torch.arange(N) % 2), "edge:edge_label"), "refused"),
    "graph-target-of-one": (lambda: (graph(), "graph:y"), "refused"),
    "link": (lambda: (graph(), "link"), "fine"),
    "link-of-many": (lambda: (_several(), "link"), "refused"),
    "odd-attributes": (lambda: (graph(name="x", when=3, things={"a": 1}, f=len), "node:y"), "fine"),
    "positions": (lambda: (graph(pos=torch.rand(N, 3)), "node:y"), "fine"),
    "adjacency": (lambda: (Data(x=X, y=Y, adj_t=torch.eye(N).to_sparse()), "node:y"), "refused"),
    "edge-weight": (lambda: (graph(edge_attr=..., edge_weight=torch.rand(2 * N)), "node:y"), "fine"),
    "column-called-id": (lambda: (graph(id=torch.arange(N) % 3), "node:y"), "either"),
    "column-called-split": (lambda: (graph(split=torch.arange(N) % 3), "node:y"), "either"),
    "batch-of-none": (lambda: (Batch(), "node:y"), "refused"),
}  # fmt: skip


def _object(make: Callable[[], tuple[Any, str]], verdict: str, place: Place) -> None:
    data, target = make()
    made = place.prepare(target, data)
    if isinstance(made, Refusal):
        assert verdict != "fine", f"a valid object was refused: {made}"
        return
    assert verdict != "refused", f"it was not refused: {made.data.graph}"
    sound(made.data)
    if isinstance(data, list | tuple) and not isinstance(data[0], Batch):
        assert made.data.count("graph") == len(data), f"{made.data.count('graph')} graphs of {len(data)}"
    if isinstance(data, Data) and not isinstance(data, Batch):
        assert made.data.count("node") == data.num_nodes, f"{made.data.count('node')} nodes of {data.num_nodes}"


def _list_masks(given: str, shape: str, place: Place) -> None:
    """Masks of the nodes of many graphs are their split, too."""
    graphs = []
    for number in range(10):
        data = graph(10 + number)
        mask = torch.arange(10 + number) < 5
        data[given] = mask if shape == "flat" else mask[:-1]
        graphs.append(data)
    made = place.prepare("node:y", graphs)
    if isinstance(made, Refusal):
        assert "mask" in made, f"the mask is not named: {made}"
        assert shape == "short", f"plain masks were refused: {made}"
        return
    assert shape == "flat", "masks of a wrong length are taken"
    rows = torch.cat([each[given] for each in graphs])
    codes = torch.as_tensor(made.splits["node"].codes(len(rows)))
    wrong = (codes == 0) & (rows if given == "test_mask" else ~rows)
    assert not bool(wrong.any()), f"{int(wrong.sum())} rows are trained on against {given}"
