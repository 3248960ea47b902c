"""The libraries behind the adapters are optional."""

import importlib.util
import subprocess
import sys

import pytest

import jaxarc.adapters

FOREIGN = ("gymnasium", "gymnax", "stoa", "envelope", "flax", "stable_baselines3", "torch")


def test_the_adapters_import_no_foreign_library_before_they_are_used():
    code = f"import sys, jaxarc.adapters; print(*sorted(set({FOREIGN}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    "first",
    [
        "import gymnasium",
        "import jaxarc, gymnasium",
        "import gymnasium, jaxarc",
        "import jaxarc.adapters, gymnasium",
        "import jaxarc.adapters.to_gymnasium, gymnasium",
        "import jaxarc, gymnasium.envs.registration as gymnasium",
    ],
)
def test_an_id_with_its_module_is_all_that_a_client_needs_in_any_order_of_imports(first):
    code = f"{first}; print(gymnasium.make('jaxarc:jaxarc/starter-v1').spec.max_episode_steps)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "20\n"), done.stderr


def test_registration_loads_neither_jax_nor_the_adapters():
    code = (
        "import sys, jaxarc, gymnasium; print('jaxarc/starter-v1' in gymnasium.registry, "
        "*{'jax', 'jaxarc.adapters.to_gymnasium'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_library_that_is_missing_is_missing_as_before():
    code = "import sys, jaxarc\njaxarc.lazy.when_imported('no_such_library', print)\nimport no_such_library"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'no_such_library'"


def test_libraries_that_import_gymnasium_themselves_are_imported_after_jaxarc():
    pytest.importorskip("gymnax", reason="gymnax is not installed")
    code = "import jaxarc, gymnax, jaxarc.adapters; print('jaxarc/starter-v1' in gymnax.registered_envs)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("library", ["gymnasium", "gymnax"])
def test_importing_the_adapters_registers_them_where_the_library_is_imported(library):
    pytest.importorskip(library, reason=f"{library} is not installed")
    code = f"import {library}, jaxarc.adapters; print({library}.make('jaxarc/starter-v1', max_episode_steps=3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Env" in done.stdout


@pytest.mark.parametrize(
    ("library", "name", "package"),
    [
        ("gymnasium", "GymnasiumEnv", "gymnasium"),
        ("gymnasium", "GymnasiumVectorEnv", "gymnasium"),
        ("gymnax", "GymnaxEnvironment", "gymnax six"),
        ("stoa", "StoaEnvironment", "stoa-env"),
        ("envelope", "EnvelopeEnvironment", "jax-envelope"),
        ("stable_baselines3", "Sb3VecEnv", "stable-baselines3"),
    ],
)
def test_a_missing_library_is_named_with_the_packages_to_install(monkeypatch, library, name, package):
    for module in [module for module in sys.modules if module.startswith("jaxarc.adapters.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{name} needs .*; pip install {package}"):
        getattr(jaxarc.adapters, name)


def test_every_public_name_leads_somewhere_and_others_do_not():
    pytest.importorskip("stoa", reason="stoa-env is not installed; pip install stoa-env")
    names = set(jaxarc.adapters.__all__)
    homes = {"Sb3VecEnv": "stable_baselines3", "EnvelopeEnvironment": "envelope"}
    homes |= dict.fromkeys(("GymnaxEnvironment", "GymnaxParams", "GymnaxState", "register_gymnax"), "gymnax")
    names -= {name for name, library in homes.items() if importlib.util.find_spec(library) is None}
    for name in names:
        assert getattr(importlib.import_module("jaxarc.adapters"), name).__name__ == name
    with pytest.raises(AttributeError, match=r"'GymEnv'.*GymnasiumEnv"):
        _ = jaxarc.adapters.GymEnv
