"""Profiles as values."""

from __future__ import annotations

import pickle

import pytest

from mxwire.protocol import PROFILES, Defect, Profile


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda each: each.name)
def test_a_profile_can_be_pickled(profile: Profile) -> None:
    """Campaigns hand them to other processes, compiled or not."""
    for each in (profile, profile.with_defects(Defect.NACK_TO_INDEX)):
        found = pickle.loads(pickle.dumps(each))
        assert found == each and found.tick == each.tick
