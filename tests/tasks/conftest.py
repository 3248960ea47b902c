"""Every test of tasks has a data folder and a cache of its own."""

import pytest


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("jaxarc")
    monkeypatch.setenv("JAXARC_DATA", str(folder / "data"))
    monkeypatch.setenv("JAXARC_CACHE", str(folder / "cache"))
