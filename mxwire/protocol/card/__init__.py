"""The card's side of a host: checks frames, learns indexes, answers PULLs, runs pulls and sends nacks."""
