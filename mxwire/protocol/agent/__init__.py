"""A host for several processes: the endpoints of each are in the process of another host, the agent.

``records.py`` describes the records that pass between an agent and the applications attached to it, and has the theory
of operation. ``attached.py`` is the application's node, ``served.py`` the agent's side of one application.
"""
