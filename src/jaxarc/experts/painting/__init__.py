"""How the painter finds short sequences: what is left to do, edits worth a try for each action format, a beam."""
