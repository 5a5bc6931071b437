"""The card's side of a host: validates frames, learns indexes, answers PULLs, runs pulls and sends nacks."""
