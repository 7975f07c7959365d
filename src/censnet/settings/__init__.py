"""Settings of model, training and data: their schema, and the presets."""

from censnet.settings.presets import make_settings
from censnet.settings.schema import Settings

__all__ = ["Settings", "make_settings"]
