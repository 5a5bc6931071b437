"""The card's side of a host: checks frames, learns indexes, answers PULLs, runs pulls and sends nacks.

``interface.py`` checks each received frame and refuses it with a nack if its endpoint or session is wrong; ``bulk.py``
does so for runs of frames. ``transfers.py`` takes PULLs and their replies: ``pull.py`` requests the blocks of a large
message, again if they are lost, and ``replies.py`` answers such requests. ``outgoing.py`` transmits.
"""
