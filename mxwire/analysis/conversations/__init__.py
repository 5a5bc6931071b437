"""Conversations of a capture and all their messages, followed frame by frame in bounded memory."""

from mxwire.analysis.conversations.follower import Follower
from mxwire.analysis.conversations.message import Acknowledgement, Message, Notice, Pulled, Refusal
from mxwire.analysis.conversations.partners import Connect, Conversation, Flow
from mxwire.analysis.conversations.watch import Role, Watch

__all__ = [
    "Acknowledgement",
    "Connect",
    "Conversation",
    "Flow",
    "Follower",
    "Message",
    "Notice",
    "Pulled",
    "Refusal",
    "Role",
    "Watch",
]
