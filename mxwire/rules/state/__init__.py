"""State of hosts and conversations, as the judge has observed them: the trackers in this package write the state, and
the rules only read it.
"""
