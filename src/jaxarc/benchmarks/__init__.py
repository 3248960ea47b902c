"""How fast the environment is, measured through the calls that users make.

``core.core_rows`` and its like list what can be measured, ``measure.measure_rows`` measures it, and the results say how
and on what.
"""
