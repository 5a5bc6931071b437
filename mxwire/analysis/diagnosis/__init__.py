"""Diagnosis of the hosts and the network of a capture: findings with evidence and advice."""

from mxwire.analysis.diagnosis.examination import Examination
from mxwire.analysis.diagnosis.finding import Evidence, Finding, Party
from mxwire.analysis.diagnosis.registry import CATALOGUE, GROUPS, Diagnosis, catalogue

__all__ = ["CATALOGUE", "GROUPS", "Diagnosis", "Evidence", "Examination", "Finding", "Party", "catalogue"]
