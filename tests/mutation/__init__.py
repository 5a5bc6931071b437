"""Mutants: one-place changes of the package that tests must notice."""
