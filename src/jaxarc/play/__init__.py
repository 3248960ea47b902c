"""Pages on this machine: play tasks by hand, watch a training run.

They need the libraries of the extra ``play``: ``pip install starlette uvicorn``.
"""
