"""Doctor: what keeps an interface from working as a live host, and what to do about it."""

from mxwire.host.doctor.examination import examine
from mxwire.host.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "examine"]
