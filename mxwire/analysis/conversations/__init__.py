"""Conversations of a capture and all their messages, followed frame by frame in bounded memory."""

from mxwire.analysis.conversations.follower import Follower
from mxwire.analysis.conversations.frame_marks import FrameMarks, Role
from mxwire.analysis.conversations.message import Acknowledgement, CapturedMessage, MessagePull, Notice, Refusal
from mxwire.analysis.conversations.partners import Connect, Conversation, Flow
from mxwire.analysis.conversations.state import MessageWatch

__all__ = [
    "Acknowledgement",
    "CapturedMessage",
    "Connect",
    "Conversation",
    "Flow",
    "Follower",
    "FrameMarks",
    "MessagePull",
    "MessageWatch",
    "Notice",
    "Refusal",
    "Role",
]
