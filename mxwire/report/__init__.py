"""Presentation of results: lines, trees, tables, diagrams and JSON records. Nothing is decoded here.

``document.py`` has the blocks that all reports consist of, and renders them. A frame is shown as one line by
``frame_line.py``, with the words of ``summary.py``; as a tree by ``tree.py``; and as JSON by ``frame_record.py``. Each
other file presents one kind of result, such as ``diagnosis.py`` the findings of ``diagnose``, as text and as JSON.
"""
