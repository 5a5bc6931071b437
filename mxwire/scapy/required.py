"""The check that scapy is installed; imported before all modules that need it."""

from __future__ import annotations

from mxwire.extras import import_extra

import_extra("scapy.packet", "scapy", "mxwire.scapy")
