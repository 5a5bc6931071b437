"""mxwire: a packet-level toolkit for Myrinet Express over Ethernet (MXoE) and Open-MX."""

__version__ = "0.1.0"
