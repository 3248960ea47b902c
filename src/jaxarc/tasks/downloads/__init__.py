"""Data sets that are brought to this machine: fetched, checked, and kept in the data folder."""
