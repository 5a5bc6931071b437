"""How pages of the documentation are made: their markers replaced, and the pages that are not written by hand."""
