"""Replay of captures to live hosts.

``raw/`` transmits the recorded frames unchanged, at the times of ``raw/pace.py``. ``stateful/`` plays one recorded host
against a live one: ``stateful/actor.py`` is the played host, ``stateful/translator.py`` puts live sessions and numbers
into recorded frames, and ``stateful/comparison.py`` compares the answers.
"""
