"""Programs that try to break the package for longer than a test may; each folder is one campaign, with its own tests.

``episodes`` compares the rules with a second implementation, ``mutants`` breaks the source, ``faults``
kills and damages, ``inputs`` feeds bad input, ``soak`` trains for hours. The Makefile has a target for each,
CONTRIBUTING.md a table.
"""
