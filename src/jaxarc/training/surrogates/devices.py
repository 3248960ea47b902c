"""Where the models of a run, and its batches, lie."""

from typing import Any, TypeVar

import jax
import optax
from jax.sharding import NamedSharding

from jaxarc.config import ConfigValidationError, SurrogateMeshConfig
from jaxarc.parallel import create_mesh
from jaxarc.parallel.mesh import DATA, MODEL, SPLIT, STAGE, place
from jaxarc.surrogate import in_one_piece, over_stages, place_weights
from jaxarc.surrogate.mesh import keep_placement

Tree = TypeVar("Tree")
Model = TypeVar("Model")


class Devices:
    """The devices of a run: on one, everything stays as it is."""

    def __init__(self, config: SurrogateMeshConfig, accumulation_steps: int = 1):
        """Choose them.

        Args:
            config: how many, and what is split over them.
            accumulation_steps: that each batch is cut into before.

        Raises:
            ValueError: there are fewer than the config asks for.
        """
        self.config, self.mesh, self._steps = config, None, accumulation_steps
        if config.num_devices > 1:
            axis, size = (STAGE, config.stages) if config.stages > 1 else (MODEL, config.model_devices)
            self.mesh = create_mesh((config.data_devices, size), (DATA, axis))

    @property
    def of_batches(self) -> NamedSharding | None:
        """Where batches go; None for the default device."""
        return None if self.mesh is None else NamedSharding(self.mesh, SPLIT)

    def spread(self, model: Model) -> Model:
        """Let the layers of a fresh model lie over the stages, where there are several.

        Raises:
            ValueError: the stages cannot have as many layers each.
        """
        if self.mesh is None or self.config.stages == 1:
            return model
        return over_stages(model, self.mesh, self.config.parts)

    def keep(self, optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
        """Let an optimizer leave everything where it lies."""
        return optimizer if self.mesh is None else keep_placement(optimizer, self.mesh)

    def put_weights(self, state: Tree) -> Tree:
        """Put models and the states of their optimizers on the devices."""
        return state if self.mesh is None else place_weights(state, self.mesh)

    def put_batch(self, batch: Tree) -> Tree:
        """Put a batch on the devices.

        Raises:
            ConfigValidationError: the examples cannot be split evenly.
        """
        if self.mesh is None:
            return batch
        count, parts = len(jax.tree.leaves(batch)[0]), self.config.parts if self.config.stages > 1 else 1
        if count % (divisor := self.config.data_devices * parts * self._steps):
            raise ConfigValidationError(
                f"a batch of {count} examples cannot be split evenly over surrogate_mesh.data_devices="
                f"{self.config.data_devices}, each in {self._steps} accumulation step(s) of {parts} part(s); take "
                f"other numbers, or a multiple of {divisor} examples"
            )
        return place(batch, self.mesh, SPLIT)

    def gather(self, models: dict[str, Any]) -> dict[str, Any]:
        """Return the models as they are on one device, to be measured."""
        return models if self.mesh is None else {name: in_one_piece(model) for name, model in models.items()}
