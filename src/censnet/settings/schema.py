"""All settings of a training, in three sections, and the names of presets and of their sections."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from censnet.settings.data_settings import DataSettings
from censnet.settings.model_settings import ModelSettings
from censnet.settings.section import Section
from censnet.settings.training_settings import TrainingSettings

__all__ = ["DataSettings", "ModelSettings", "Settings", "TrainingSettings"]

PRESETS = ("strong", "paper", "released")
MOLECULE = "molecule"  # section of a preset for atoms and bonds of molecules
ORIENTED = "oriented"  # section of a preset where the sign of a target or of a column follows the order of the ends
OF_LINKS = {
    "model": ("decoder", "latent", "diffusion_steps", "positive_weight"),
    "training": ("edge_mask_ratio", "negative_ratio"),
}


class Settings(Section):
    """All settings of a training."""

    preset: str = "strong"
    seed: int = Field(0, ge=0, lt=2**31)
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()
    data: DataSettings = DataSettings()

    def with_model(self, changes: Mapping[str, object]) -> Settings:
        """The same with other values of some settings of the model, which are not checked again."""
        return self.model_copy(update={"model": self.model.model_copy(update=changes)})

    def with_training(self, changes: Mapping[str, object]) -> Settings:
        """The same with other values of some settings of the training, which are not checked again."""
        return self.model_copy(update={"training": self.training.model_copy(update=changes)})
