"""What turns observations of any kind into rows of numbers before a detector sees them."""

from tocsin.representations.adapt import adapt, restore
from tocsin.representations.autoencoder import Autoencoder
from tocsin.representations.base import Representation, Step
from tocsin.representations.networks import ONNX
from tocsin.representations.pca import PCA
from tocsin.representations.text import SentenceEmbedding

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
