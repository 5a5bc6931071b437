"""The interoperability matrix: implementations against implementations, in cases, under impairments."""
