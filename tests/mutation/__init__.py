"""The worth of the tests: a sample of automatic mutants, each run against each test that reaches its line.

``make mutation`` (``python -m tests.mutation --help``) draws the sample (:mod:`.operators`), records once which tests
reach which mutants (:mod:`.reach`), and runs each mutant against these tests in a process that is forked from one that
has imported and collected everything (:mod:`.player`). The results are lines of JSON in ``recording.jsonl``.
"""
