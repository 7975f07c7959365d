"""Modules with parameters: the two layers and their kernels, the encoder, heads and link decoders, and the model."""

from censnet.nn.causal import CausalLayer
from censnet.nn.causal_encoder import CausalEncoder
from censnet.nn.causal_stream import CausalStream
from censnet.nn.decoder import LinkDecoder
from censnet.nn.directed import DirectedEdgeLayer, DirectedNodeLayer
from censnet.nn.dropout import Dropout
from censnet.nn.encoder import CensNet
from censnet.nn.heads import GraphHead, Head, RowHead
from censnet.nn.kernels import Chebyshev, Hop, Kernel, Lanczos, PageRank, Power
from censnet.nn.layers import LAYERS, EdgeLayer, LayerOptions, NodeLayer
from censnet.nn.model import Model, Outputs
from censnet.nn.oriented import OrientedEdgeLayer, OrientedNodeLayer
from censnet.nn.oriented_encoder import OrientedNet
from censnet.nn.oriented_head import OrientedHead
from censnet.nn.pair_decoder import PairDecoder
from censnet.nn.potentials import PotentialLayer
from censnet.nn.vae import CensNetVAE, VariationalDecoder

__all__ = [
    "LAYERS",
    "CausalEncoder",
    "CausalLayer",
    "CausalStream",
    "CensNet",
    "CensNetVAE",
    "Chebyshev",
    "DirectedEdgeLayer",
    "DirectedNodeLayer",
    "Dropout",
    "EdgeLayer",
    "GraphHead",
    "Head",
    "Hop",
    "Kernel",
    "Lanczos",
    "LayerOptions",
    "LinkDecoder",
    "Model",
    "NodeLayer",
    "OrientedEdgeLayer",
    "OrientedHead",
    "OrientedNet",
    "OrientedNodeLayer",
    "Outputs",
    "PageRank",
    "PairDecoder",
    "PotentialLayer",
    "Power",
    "RowHead",
    "VariationalDecoder",
]
