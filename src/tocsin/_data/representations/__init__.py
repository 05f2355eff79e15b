"""What turns observations of any kind into rows of numbers before a detector sees them."""

from tocsin._data.representations.adapt import adapt, restore
from tocsin._data.representations.autoencoder import Autoencoder
from tocsin._data.representations.base import Representation, Step
from tocsin._data.representations.networks import ONNX
from tocsin._data.representations.pca import PCA
from tocsin._data.representations.text import SentenceEmbedding

__all__ = [
    "ONNX",
    "PCA",
    "Autoencoder",
    "Representation",
    "SentenceEmbedding",
    "Step",
    "adapt",
    "restore",
]
