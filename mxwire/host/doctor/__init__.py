"""Doctor: checks of an interface for use by a live host, with advice."""

from mxwire.host.doctor.examination import examine
from mxwire.host.doctor.finding import DoctorFinding, DoctorLevel

__all__ = ["DoctorFinding", "DoctorLevel", "examine"]
