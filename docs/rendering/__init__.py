"""Rendering of documentation pages: replacement of markers, and the generated pages."""
