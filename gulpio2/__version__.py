"""The version of the package; setup.py reads it out of this text."""

__all__ = ["__version__"]

__version__ = "1.0.0.dev0"
