"""What turns observations of any kind into rows of numbers before a detector sees them."""

from tocsin._data.representations import ONNX, PCA, Autoencoder, Representation, SentenceEmbedding

__all__ = ["ONNX", "PCA", "Autoencoder", "Representation", "SentenceEmbedding"]
