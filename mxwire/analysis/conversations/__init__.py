"""Conversations of a capture and all their messages, followed frame by frame in bounded memory."""

from mxwire.analysis.conversations.follower import Follower
from mxwire.analysis.conversations.message import Acknowledgement, CapturedMessage, MessagePull, Notice, Refusal
from mxwire.analysis.conversations.partners import Connect, Conversation, Flow
from mxwire.analysis.conversations.watch import MessageWatch, Role

__all__ = [
    "Acknowledgement",
    "CapturedMessage",
    "Connect",
    "Conversation",
    "Flow",
    "Follower",
    "MessagePull",
    "MessageWatch",
    "Notice",
    "Refusal",
    "Role",
]
