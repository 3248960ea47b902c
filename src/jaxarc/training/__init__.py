"""The pairs that training learns from, and the training of surrogates."""
