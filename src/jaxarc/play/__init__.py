"""Pages on this machine: play tasks by hand, watch a training run.

They need the extra ``play``: ``pip install 'jaxarc[play]'``.
"""
