"""GGUF files as a second way to say what a model is: their metadata, read into the fields of a config.json."""

from kvlib.gguf.reader import read_gguf

__all__ = ["read_gguf"]
