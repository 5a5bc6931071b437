"""The claims of the papers, judged by recordings of studies.

``claim.py`` has the types; ``seed000.py`` to ``seed002.py`` the claims, each a function over the evidence;
``model_study.py`` the measurements in virtual time that they need; ``page.py`` the report.
"""
