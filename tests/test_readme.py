"""What README.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch_geometric.data import Data

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "payments").mkdir()
    table = pd.DataFrame({"source": ["a", "b", "a"], "target": ["b", "c", "c"], "amount": [1.0, 2.5, 9.0]})
    table.assign(is_fraud=[0, 1, 0]).to_csv(tmp_path / "payments" / "edges.csv", index=False)
    monkeypatch.chdir(tmp_path)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    names: dict[str, Any] = {
        "torch": torch,
        "data": Data(x=torch.randn(2, 3), edge_index=edge_index, edge_attr=torch.ones(2, 1)),
        "scores": pd.DataFrame({"score": [0.1, 0.2, 0.3]}),
    }
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(example, names)
    assert names["nodes"].shape == (4, 32)
    assert names["edges"].shape == (5, 32)
    results = names["data"].results("edge", names["scores"])
    assert results["source"].tolist() == ["a", "b", "a"]
    assert names["data"].graph.edge_width == 1  # the amount; a target is no feature
