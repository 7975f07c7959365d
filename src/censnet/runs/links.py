"""Link predictions on a user's graph: probabilities of pairs by their ids, their scores, and the top new links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from torch import Tensor

from censnet.console import counting
from censnet.data.dataset import Dataset
from censnet.data.splits.links import LinkSplit
from censnet.data.tables.id_index import IdIndex, as_ids, find_alike, read_ids
from censnet.data.tables.keys import find_key
from censnet.errors import ArgumentError, DataError, name_columns, quote
from censnet.levels import Level
from censnet.nn.decoder import LinkDecoder, LinkInputs
from censnet.nn.model import Model, Outputs
from censnet.ops.arrays import Array, BoolArray
from censnet.ops.graph import Graph
from censnet.ops.pairs import find_bipartition
from censnet.option_names import name_option
from censnet.tasks.metrics import score_links
from censnet.tasks.targets import Target

Keep = Literal["ids", "all"]
LINK = Target(level=Level.LINK, column="link", kind="binary", classes=["no link", "link"])
ENDS = ("source", "target")
BLOCK = 2**24  # pairs that are scored at once
GRID = 2**22  # and where some nodes are scored with all


class HeldOutPairs(NamedTuple):
    """Pairs of one part that message passing did not see, all of them links or none of them.

    Args:
        part: validation or test.
        linked: whether the pairs are links.
        pairs: the two nodes of each.
        probability: of a link, the mean over members.
        deviation: the standard deviation over members, if there are several.

    Shape:
        pairs (2, n), probability and deviation (n,).
    """

    part: str
    linked: bool
    pairs: Tensor
    probability: Tensor
    deviation: Tensor | None


def link_table(
    dataset: Dataset,
    models: Sequence[Model],
    outputs: Sequence[Outputs],
    pairs: pd.DataFrame | None,
    top: int | None,
    keep: Keep,
    device: torch.device,
    progress: bool = False,
    calibrate: Callable[[Tensor], Tensor] = lambda probability: probability,
    sets: Callable[[Tensor], BoolArray] | None = None,
    unlike: Array | None = None,
) -> pd.DataFrame:
    """Link probabilities of the rows of the edge table, of given pairs, or of the most probable pairs without an edge.

    For the latter all pairs are scored, on the device; others are few and scored on the CPU. `calibrate` is applied to
    the mean over members, and so is `sets`, which gives the sets of `link` and `no link`. `unlike` says why a node is
    unlike those of training, or None.
    """
    graph, models = one_graph(dataset), [model.cpu() for model in models]
    latents = [member.link_inputs for member in outputs if member.link_inputs is not None]
    if top is not None:
        if top < 1:
            raise ArgumentError(f"top is {top}, expected at least 1")
        placed = [model.to(device) for model in models], [latent.to(device) for latent in latents]
        with counting("nodes", graph.num_nodes, progress) as tick:
            found, probability = top_links(*placed, graph, top, tick)
        for model in models:
            model.cpu()
        source, target = node_names(dataset)[found.numpy()]
        values = _link_values(probability, None, calibrate, sets, found, unlike)
        return pd.concat([pd.DataFrame({"source": source, "target": target}), values], axis=1)
    numbers, wrong = (graph.ends, []) if pairs is None else number_pairs(dataset, pairs)
    mean, deviation = pair_probability(models, latents, numbers)
    values = _link_values(mean, deviation, calibrate, sets, numbers, unlike)
    if pairs is None:
        return dataset.results("edge", values, keep)
    if any(wrong):
        values = values.mask(pd.Series([message is not None for message in wrong]))
        values["error"] = wrong
    return pd.concat([pairs.reset_index(drop=True), values], axis=1)


def _link_values(
    probability: Tensor,
    deviation: Tensor | None,
    calibrate: Callable[[Tensor], Tensor],
    sets: Callable[[Tensor], BoolArray] | None,
    pairs: Tensor,
    unlike: Array | None,
) -> pd.DataFrame:
    """The columns of the answers for pairs. (2, n)"""
    values = pd.DataFrame({"link_p": calibrate(probability).numpy()})
    if deviation is not None:
        values["link_std"] = deviation.numpy()
    if sets is not None:
        names = np.array(["", LINK.classes[0], LINK.classes[1], " | ".join(LINK.classes)], dtype=object)
        values.insert(0, "link_set", names[sets(probability) @ np.array([1, 2])])
    if unlike is not None:
        ends = [unlike[side] for side in pairs.numpy()]
        said = zip(
            *([f"{side}: {why}" if why else "" for why in mine] for side, mine in zip(ENDS, ends, strict=True)),
            strict=True,
        )
        values["unlike_training"] = np.array(["; ".join(filter(None, each)) or None for each in said], dtype=object)
    return values


def check_link_options(levels: Sequence[str], pairs: object, top: int | None) -> None:
    """Raise if `pairs` or `top` is given where no links are predicted, or both are given.

    Args:
        levels: that are predicted.
        pairs, top: as in `Predictor.predict`.
    """
    given = [name_option(flag) for flag, value in (("--pairs", pairs), ("--top", top)) if value is not None]
    if given and "link" not in levels:
        raise ArgumentError(f"{given[0]} is given, which is for links, but what is predicted is {' and '.join(levels)}")
    if len(given) > 1:
        both = " and ".join(given)
        raise ArgumentError(f"{both} are both given, expected one: the pairs to score, or how many to suggest")


def score_held_out(models: Sequence[Model], outputs: Sequence[Outputs], links: LinkSplit) -> list[HeldOutPairs]:
    """The probabilities of the held-out links and of the sampled negatives, for validation and test.

    Args:
        models: the members.
        outputs: of each member, on the message graph of the split.
        links: the split.
    """
    models = [model.cpu() for model in models]
    latents = [member.link_inputs for member in outputs if member.link_inputs is not None]
    return [
        HeldOutPairs(part, linked, pairs, *pair_probability(models, latents, pairs))
        for part, linked, pairs in (
            ("validation", True, links.validation_links),
            ("validation", False, links.validation_negatives),
            ("test", True, links.test_links),
            ("test", False, links.test_negatives),
        )
    ]


def link_metrics(
    held_out: Sequence[HeldOutPairs], calibrate: Callable[[Tensor], Tensor] = lambda probability: probability
) -> dict[str, dict[str, float]]:
    """Part -> the metrics of its held-out links against its negatives, with calibrated probabilities."""
    logits = {
        (each.part, each.linked): calibrate(each.probability).double().logit(eps=1e-12).numpy() for each in held_out
    }
    return {part: score_links(logits[part, True], logits[part, False]) for part in ("validation", "test")}


def one_graph(dataset: Dataset) -> Graph:
    """The graph of the data; many graphs are an error."""
    if not isinstance(dataset.graph, Graph):
        raise DataError("there are many graphs, expected one: links are predicted within one graph")
    return dataset.graph


def number_pairs(data: Dataset, pairs: pd.DataFrame) -> tuple[Tensor, list[str | None]]:
    """The nodes of each pair of ids; a pair with an unknown node is 0-0 and has an error message."""
    own = data.schema.edges.keys
    ends = [
        own[role] if own.get(role) in pairs.columns else find_key(pairs.columns, role) for role in ("source", "target")
    ]
    if None in ends:
        raise DataError(f"has the columns {name_columns(pairs.columns)}, expected source and target", "pairs")
    rows = data.rows("node").numpy()
    good = np.flatnonzero(rows >= 0)
    known = IdIndex(as_ids(_ids(data).iloc[good]))
    nodes = np.append(rows[good[known.rows]], -1)  # the last is of an id that is missing or unknown
    numbers = np.zeros((2, len(pairs)), np.int64)
    wrong: list[str | None] = [None] * len(pairs)
    for end, name in enumerate(ends):
        assert name is not None
        ids = read_ids(pairs, name, "pairs")
        found = nodes[known.find(ids)]
        bad = np.flatnonzero(found < 0)
        for row, alike in zip(bad.tolist(), find_alike(ids.take(pa.array(bad)), known), strict=True):
            given = pairs[name].iloc[row]
            what = "the id is missing" if pd.isna(given) else f"no node has the id {quote(given)}"
            hint = "" if alike is None else f" (there is {quote(alike)}: ids are compared as they are written)"
            wrong[row] = f"pairs, row {row + 1}, column {name}: {what}{hint}"
        numbers[end] = found.clip(min=0)
    return torch.from_numpy(numbers), wrong


@torch.no_grad()
def pair_probability(
    models: Sequence[Model], latents: Sequence[LinkInputs], pairs: Tensor
) -> tuple[Tensor, Tensor | None]:
    """The link probability of each pair: the mean over members, and their standard deviation if there are several."""
    found = []
    for model, latent in zip(models, latents, strict=True):
        parts = [_decoder(model).score(latent, part) for part in torch.split(pairs, BLOCK, dim=1)]
        found.append(torch.cat(parts).float().sigmoid().cpu())
    each = torch.stack(found)
    return each.mean(0), each.std(0) if len(each) > 1 else None


@torch.no_grad()
def top_links(
    models: Sequence[Model],
    latents: Sequence[LinkInputs],
    graph: Graph,
    top: int,
    tick: Callable[[int], None] = lambda _: None,
) -> tuple[Tensor, Tensor]:
    """The most probable pairs without an edge, in descending order, from all pairs, some nodes at a time.

    Where links are directed, pairs are ordered: i, j may be among them while j, i is an edge.

    `tick` is called with the number of nodes that were done. -> (2, top), (top,)
    """
    count, ordered = graph.num_nodes, _decoder(models[0]).is_ordered
    first, second = graph.ends.cpu() if ordered else graph.ends.cpu().sort(0).values
    owner, side = None if graph.owner is None else graph.owner.cpu(), find_bipartition(graph)
    best, where = torch.empty(0), torch.empty(0, dtype=torch.long)
    rows = max(1, GRID // max(count, graph.node_width))
    for start in range(0, count, rows):
        nodes = torch.arange(start, min(start + rows, count))
        begin = 0 if ordered else start  # the first node that is the second one of a pair
        likely = torch.stack([
            _decoder(model).score_all_pairs(latent, nodes, begin).float().sigmoid().cpu()
            for model, latent in zip(models, latents, strict=True)
        ]).mean(0)  # fmt: skip
        here = (first >= start) & (first < start + rows)
        every = torch.ones_like(likely, dtype=torch.bool)
        open_ = nodes.unsqueeze(1) != torch.arange(count) if ordered else every.triu(1)
        open_[first[here] - start, second[here] - begin] = False
        if owner is not None:  # of many graphs, pairs lie within one
            open_ &= owner[nodes].unsqueeze(1) == owner[begin:]
        if side is not None and ordered:  # from sources to targets; of nodes without an edge the side is not known
            open_ &= (side[nodes].unsqueeze(1) != 1) & (side != 0)
        elif side is not None:
            open_ &= (side[nodes].unsqueeze(1) != side[start:]) | (side[start:] < 0)
        row, column = open_.nonzero(as_tuple=True)
        best = torch.cat([best, likely[row, column]])
        where = torch.cat([where, (row + start) * count + column + begin])
        if len(best) > top:
            best, order = best.topk(top)
            where = where[order]
        tick(len(nodes))
    order = best.argsort(descending=True, stable=True)
    return torch.stack([where[order] // count, where[order] % count]), best[order]


def _decoder(model: Model) -> LinkDecoder:
    if model.decoder is None:
        raise ValueError("the model has no decoder, expected one: links are scored by it")
    return model.decoder


def node_names(data: Dataset) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """The user's id of each node of the tensors."""
    names = np.empty(data.count("node"), object)
    ids, rows = _ids(data).astype("string").fillna(""), data.rows("node").numpy()
    good = np.flatnonzero(rows >= 0)[::-1]
    names[rows[good]] = np.array(ids, object)[good]
    return names


def _ids(data: Dataset) -> pd.Series:
    frame = data.tables.frames()["nodes"]
    column = data.schema.nodes.keys.get("id") or frame.columns[0]
    return frame[column]
