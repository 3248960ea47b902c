"""Programs compiled for an accelerator, without one: what they launch, loop over and move."""
