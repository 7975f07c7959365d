"""`censnet report`: a run on one page."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from censnet.cli.messages import echo
from censnet.cli.options import Device, RunDir, Strict, path_option
from censnet.cli.predict import check_outputs, open_run
from censnet.errors import RunError
from censnet.text import format_bytes


class Method(Enum):
    """The two dimensions of a map of embeddings."""

    pca = "pca"
    tsne = "tsne"


def report(
    run: RunDir,
    to: Annotated[Path, path_option("The .html file to write.")],
    data: Annotated[
        str | None, typer.Argument(help="Data to predict and map; those of the training if not given.")
    ] = None,
    method: Annotated[
        Method, typer.Option("--map", help="Two dimensions by principal components, or by t-SNE, which takes longer.")
    ] = Method.pca,
    comparison: Annotated[Path | None, path_option("A folder of `censnet compare`, whose table is shown.")] = None,
    explain: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Explain the N worst rows of each target; 5, as far as seconds allow, if not given.",
        ),
    ] = None,
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Show a run on one page: scores with intervals, thresholds, calibration, errors, and a map of all embeddings."""
    trained = open_run(run)
    from censnet.files import atomic_write
    from censnet.report import report_page

    if to.suffix.lower() not in (".html", ".htm"):
        raise RunError(f"--to is {to}, expected the name of a page that ends in .html")
    check_outputs([to], trained, data)
    page = report_page(
        trained, data, method=method.value, comparison=comparison, explain=explain, strict=strict, device=device,
        progress=True,
    )  # fmt: skip
    content = page.encode()
    atomic_write(to, content)
    echo(f"{to}: {format_bytes(len(content))}; a browser shows it, without a network")
