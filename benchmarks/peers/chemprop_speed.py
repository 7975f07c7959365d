"""How many molecules chemprop trains on in a second, by its default model. Run in chemprop's own environment.

    python chemprop_speed.py SMILES.csv TARGET THREADS STEPS

Molecules are read and turned into graphs before the clock starts; batches are made while it runs, as in training. The
loop is bare, which is faster than chemprop's own, so the comparison errs on its side.
"""

import csv
import json
import sys
import time

import chemprop
import torch
from chemprop import data, featurizers, models, nn

WARM = 5


def main() -> None:
    path, target, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(threads)
    with open(path, newline="") as file:
        rows = [(row["smiles"], float(row[target])) for row in csv.DictReader(file)]
    points = [data.MoleculeDatapoint.from_smi(smiles, [value]) for smiles, value in rows]
    molecules = data.MoleculeDataset(points, featurizers.SimpleMoleculeMolGraphFeaturizer())
    molecules.cache = True
    loader = data.build_dataloader(molecules, batch_size=64, num_workers=0, shuffle=True)
    model = models.MPNN(nn.BondMessagePassing(), nn.MeanAggregation(), nn.RegressionFFN(), batch_norm=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    done = step = 0
    begin = clock()
    while step < WARM + steps:
        for graph, atoms, extra, targets, weights, less, greater in loader:
            if step == WARM:
                done, begin = 0, clock()
            predicted = model.predictor.train_step(model.fingerprint(graph, atoms, extra))
            loss = model.criterion(predicted, targets, targets.isfinite(), weights, less, greater)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done, step = done + len(targets), step + 1
            if step == WARM + steps:
                break
    seconds, cpu_seconds = (now - then for now, then in zip(clock(), begin, strict=True))
    pace = {"molecules/s": done / seconds, "molecules/CPU s": done / cpu_seconds}
    size = sum(parameter.numel() for parameter in model.parameters())
    print(json.dumps({**pace, "parameters": size, "version": chemprop.__version__}))


def clock() -> tuple[float, float]:
    """Seconds, and seconds of all threads of this process."""
    return time.perf_counter(), time.process_time()


if __name__ == "__main__":
    main()
