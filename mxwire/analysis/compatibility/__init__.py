"""Compatibility of hosts: the builds that a capture shows, and one table of the builds that work together."""

from mxwire.analysis.compatibility.builds import Build
from mxwire.analysis.compatibility.judgement import CLASSES, Answer, Judgement, judge, judge_sides
from mxwire.analysis.compatibility.reach import Reach, reach
from mxwire.analysis.compatibility.sides import Side, Sides

__all__ = ["CLASSES", "Answer", "Build", "Judgement", "Reach", "Side", "Sides", "judge", "judge_sides", "reach"]
