"""What an application is told of its requests (behaviour, section 20)."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Status codes with the numbers of Open-MX; codes that are not listed are unused or exist in MX only."""

    SUCCESS = 0
    BAD_ERROR = 1
    ALREADY_INITIALIZED = 3
    NOT_INITIALIZED = 4
    NO_DEVICE = 5
    NO_DRIVER = 6
    ACCESS_DENIED = 7
    BOARD_NOT_FOUND = 8
    BAD_ENDPOINT = 9
    SEGMENTS_BAD_COUNT = 12
    BAD_REQUEST = 13
    BAD_MATCH_MASK = 14
    NO_RESOURCES = 15
    BUSY = 20
    BAD_INFO_KEY = 21
    BAD_INFO_ADDRESS = 22
    BAD_PARAMETER_LIST = 24
    BAD_PARAMETER_KEY = 25
    BAD_PARAMETER_VALUE = 26
    PEER_NOT_FOUND = 28
    TIMEOUT = 30
    REMOTE_ENDPOINT_BAD_ID = 32
    REMOTE_ENDPOINT_CLOSED = 33
    REMOTE_ENDPOINT_BAD_CONNECTION_KEY = 34
    BAD_INFO_LENGTH = 35
    NIC_ID_NOT_FOUND = 36
    BAD_KERNEL_ABI = 37
    BAD_LIB_ABI = 38
    BAD_MATCHING_FOR_CONTEXT_ID_MASK = 42
    CANCELLED = 90
    REMOTE_RDMA_WINDOW_BAD_ID = 91
    REMOTE_ENDPOINT_UNREACHABLE = 92
    REMOTE_ENDPOINT_BAD_SESSION = 93
    MESSAGE_ABORTED = 94
    MESSAGE_TRUNCATED = 95
    NOT_SUPPORTED_IN_HANDLER = 96
    NO_SYSTEM_RESOURCES = 97
    NOT_IMPLEMENTED = 99

    @property
    def text(self) -> str:
        """The name as a sentence would have it, for example ``remote endpoint closed``."""
        return self.name.lower().replace("_", " ")
