"""The data sets that everybody knows: what they hold, what is wrong with them, where they come from."""
