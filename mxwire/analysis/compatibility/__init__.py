"""Can two hosts talk? What each of them shows in a capture, and one table of what goes with what."""

from mxwire.analysis.compatibility.build import Build
from mxwire.analysis.compatibility.judging import CLASSES, Answer, Judgement, judge, judge_sides
from mxwire.analysis.compatibility.reach import Reach, reach
from mxwire.analysis.compatibility.sides import Side, Sides

__all__ = ["CLASSES", "Answer", "Build", "Judgement", "Reach", "Side", "Sides", "judge", "judge_sides", "reach"]
