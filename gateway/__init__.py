"""RelayRouter: a gateway that relays token streams without losing, repeating or reordering a message."""

__version__ = "0.1.0"

__all__ = ["__version__"]
