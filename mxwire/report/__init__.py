"""How findings are shown: lines, trees, tables and diagrams. No decoding happens here."""
