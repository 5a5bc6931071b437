"""The laboratory: what measurements, matrices and tests need around hosts, once for all of them.

``namespaces.py`` makes machines of their own and the cables between them, ``child.py`` runs a program and speaks with
it in lines, ``find_host.py`` finds a live host on a link, and ``machine.py`` describes the computer. Hosts in virtual
time are in :mod:`mxwire.simulation`.
"""
