"""What the judge remembers of hosts and conversations; rules read it, only the trackers here change it."""
