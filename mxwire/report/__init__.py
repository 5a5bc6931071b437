"""Presentation of results: lines, trees, tables, diagrams and JSON records. Nothing is decoded here."""
