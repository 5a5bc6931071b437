"""State of hosts and conversations, as the judge has observed them: the trackers here write it, the rules only read."""
