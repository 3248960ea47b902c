"""Plain NumPy reference of the environment's rules, written from the operation table alone."""
