"""The interoperability matrix: pairs of implementations, tested in cases and under impairments."""
