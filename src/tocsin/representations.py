"""What turns observations of any kind into rows of numbers before a detector sees them."""

from tocsin._data.representations import ONNX, PCA, Autoencoder, Representation, SentenceEmbedding, Step
from tocsin._data.representations.autoencoder import Encoder
from tocsin._data.representations.base import Described
from tocsin._data.representations.pca import Projection

__all__ = [
    "ONNX",
    "PCA",
    "Autoencoder",
    "Described",
    "Encoder",
    "Projection",
    "Representation",
    "SentenceEmbedding",
    "Step",
]
