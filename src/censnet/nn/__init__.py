"""Things with parameters: the two layers, the kernels they take, the encoder, and what answers with its embeddings."""

from censnet.nn.dropout import Dropout
from censnet.nn.encoder import CensNet
from censnet.nn.heads import GraphHead, LinkHead, RowHead
from censnet.nn.kernels import Chebyshev, Hop, Kernel, Lanczos, PageRank, Power
from censnet.nn.layers import EdgeLayer, NodeLayer
from censnet.nn.vae import CensNetVAE

__all__ = [
    "CensNet",
    "CensNetVAE",
    "Chebyshev",
    "Dropout",
    "EdgeLayer",
    "GraphHead",
    "Hop",
    "Kernel",
    "Lanczos",
    "LinkHead",
    "NodeLayer",
    "PageRank",
    "Power",
    "RowHead",
]
