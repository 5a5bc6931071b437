"""Round trips found by columns, against a search message by message."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mxwire.analysis.conversations.partners import Conversation, Flow
from mxwire.analysis.timing.measured_messages import MEASURED, UNKNOWN, MeasuredMessages
from mxwire.analysis.timing.round_trips import Lengths, RoundTrips

message = st.tuples(
    st.integers(0, 3),  # its flow
    st.sampled_from([0, 0, 1]),  # its kind
    st.sampled_from([8, 8, 8, 40, UNKNOWN]),
    st.integers(1, 9),  # time since the previous message
    st.sampled_from([0, 1, 12, None]),  # time until it is complete
    st.sampled_from([False, False, False, True]),
)


def flows():
    made = []
    for number in (1, 2):
        conversation = Conversation(number, 0, 0)
        made += [Flow(conversation, side, 10 * number + side, 0) for side in (0, 1)]
    return made


def measured(messages):
    columns = np.zeros(len(messages), MEASURED)
    now_ns = 0
    for row, (flow, kind, length, gap, took, repeated) in zip(columns, messages, strict=True):
        now_ns += gap
        row["flow"], row["kind"], row["length"], row["first_ns"] = flow, kind, length, now_ns
        row["complete_ns"] = UNKNOWN if took is None else now_ns + took
        row["repeated"] = repeated
    return columns


def one_by_one(columns):
    """The iterations and the answers, as (length, duration)."""
    iterations, answers = [], []
    conversations = defaultdict(list)
    for row in columns:
        seen = conversations[row["flow"] // 2]
        answered = seen and all(
            (
                row["flow"] != seen[-1]["flow"],
                row["length"] == seen[-1]["length"] != UNKNOWN,
                row["kind"] == seen[-1]["kind"],
                seen[-1]["complete_ns"] != UNKNOWN,
                row["first_ns"] >= seen[-1]["complete_ns"],
                not (row["repeated"] or seen[-1]["repeated"]),
            )
        )
        if answered and len(seen) == 1:
            if row["complete_ns"] != UNKNOWN:
                answers.append((row["length"], (row["complete_ns"] - seen[0]["first_ns"]) // 2))
            seen.append(row)
            continue
        if answered:
            iterations.append((row["length"], (row["first_ns"] - seen[0]["first_ns"]) // 2))
        conversations[row["flow"] // 2] = [row]
    return iterations, answers


@given(st.lists(message, max_size=40), st.lists(st.integers(0, 40)))
def test_round_trips_of_columns_are_those_found_message_by_message(messages, cuts):
    columns, of_flows = measured(messages), flows()
    trips, found = RoundTrips(), (Lengths(0), Lengths(0))
    for part in np.split(columns, sorted(cuts)):
        trips.take(MeasuredMessages(part, of_flows), *found)
    for lengths, expected in zip(found, one_by_one(columns), strict=True):
        durations = defaultdict(list)
        for length, duration in expected:
            durations[length].append(duration)
        assert {length: each._kept for length, each in lengths.by_length.items()} == durations
