"""The claims of the papers, judged by recordings of studies.

``claim.py`` has the types; ``note_2009.py``, ``araki_1998.py`` and ``goglin_2011.py`` the claims of each text, as rows
over the evidence; ``model_study.py`` the measurements in virtual time that they need; ``page.py`` the report.
"""
