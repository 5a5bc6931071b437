"""Questions to other hosts that their protocol stacks answer by themselves: who is there, how long it takes."""

from mxwire.host.asking.ping import Connects, Outcome, Pinging, Queries
from mxwire.host.asking.statistics import RoundTrips
from mxwire.host.asking.survey import Sighting, Survey

__all__ = ["Connects", "Outcome", "Pinging", "Queries", "RoundTrips", "Sighting", "Survey"]
