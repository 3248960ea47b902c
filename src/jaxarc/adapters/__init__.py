"""Our environment in the types of gymnax, Gymnasium, stable-baselines3, Stoa and envelope.

None of them is imported before it is used. Where gymnax is imported already, importing this module registers our
environments there; where flax is, our classes for its serialization. With Gymnasium ``import jaxarc`` registers them.
"""

import contextlib
import sys
from typing import TYPE_CHECKING

from jaxarc.lazy import lazy

if TYPE_CHECKING:
    from jaxarc.adapters.games_in_gymnasium import GymnasiumGame
    from jaxarc.adapters.to_envelope import EnvelopeEnvironment
    from jaxarc.adapters.to_gymnasium import GymnasiumEnv
    from jaxarc.adapters.to_gymnasium_vector import GymnasiumVectorEnv
    from jaxarc.adapters.to_gymnax import GymnaxEnvironment, GymnaxParams, GymnaxState, register_gymnax
    from jaxarc.adapters.to_sb3 import Sb3VecEnv
    from jaxarc.adapters.to_stoa import StoaEnvironment
    from jaxarc.flax_states import register_flax
    from jaxarc.gymnasium_ids import register_gymnasium

_HOMES = {
    "EnvelopeEnvironment": "jaxarc.adapters.to_envelope",
    "GymnasiumGame": "jaxarc.adapters.games_in_gymnasium",
    "GymnasiumEnv": "jaxarc.adapters.to_gymnasium",
    "GymnasiumVectorEnv": "jaxarc.adapters.to_gymnasium_vector",
    "GymnaxEnvironment": "jaxarc.adapters.to_gymnax",
    "GymnaxParams": "jaxarc.adapters.to_gymnax",
    "GymnaxState": "jaxarc.adapters.to_gymnax",
    "Sb3VecEnv": "jaxarc.adapters.to_sb3",
    "StoaEnvironment": "jaxarc.adapters.to_stoa",
    "register_flax": "jaxarc.flax_states",
    "register_gymnasium": "jaxarc.gymnasium_ids",
    "register_gymnax": "jaxarc.adapters.to_gymnax",
}

__all__ = [
    "EnvelopeEnvironment",
    "GymnasiumEnv",
    "GymnasiumGame",
    "GymnasiumVectorEnv",
    "GymnaxEnvironment",
    "GymnaxParams",
    "GymnaxState",
    "Sb3VecEnv",
    "StoaEnvironment",
    "register_flax",
    "register_gymnasium",
    "register_gymnax",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)


for _library in ("flax", "gymnax"):
    if sys.modules.get(_library) is not None:
        with contextlib.suppress(ImportError):  # an old version of one library is no reason to refuse the others
            __getattr__(f"register_{_library}")()
