"""Colours for scenarios in an editor: the words of the language as a syntax file of Vim."""

from __future__ import annotations

from collections.abc import Iterable

from mxwire.scenarios.expression import CONSTANTS, FUNCTIONS, KNOWN_WORDS
from mxwire.scenarios.head import KEYS
from mxwire.scenarios.vocabulary import ALIASES, FLAGS, FRAME, PACKETS, VERBS

STATEMENTS = ("any", "as", "burst", "either", "for", "let", "no", "nothing", "or", "order", "repeat", "wait")
MODIFIERS = ("after", "info", "should", "within")

_VIM = r"""" Vim syntax file: scenarios of mxwire (*.mxs). Made by: mxwire scenario highlight
if exists("b:current_syntax")
  finish
endif
syntax case match
syntax match mxsHead "^\(%(head)s\):"
syntax match mxsProse "^\(about\|harmful\|history\|only-simulated\|title\):.*$" contains=mxsHeadOfProse
syntax match mxsHeadOfProse "^[a-z-]\+:" contained
syntax match mxsSend "^\s*\zs>\ze\s"
syntax match mxsExpect "^\s*\zs<\ze\s"
syntax match mxsCall "^\s*\zs!\ze\s"
syntax match mxsCheck "^\s*\zs?\ze\s"
syntax match mxsField "\<\w\+\ze\(!=\|>=\|<=\|=\)"
syntax keyword mxsStatement %(statements)s
syntax keyword mxsModifier %(modifiers)s
syntax keyword mxsPacket %(packets)s
syntax keyword mxsVerb %(verbs)s
syntax keyword mxsKnown %(known)s
syntax keyword mxsFunction %(functions)s
syntax match mxsValue "\$\w\+\(\.\w\+\)\?"
syntax match mxsNumber "\<\(0x\x\+\|\d\+\(\.\d\+\)\?\(ns\|us\|ms\|s\)\?\)\>"
syntax region mxsText start=+"+ skip=+\\.+ end=+"+ oneline
syntax match mxsComment "#.*$"
highlight default link mxsHead PreProc
highlight default link mxsHeadOfProse PreProc
highlight default link mxsSend Operator
highlight default link mxsExpect Operator
highlight default link mxsCall Operator
highlight default link mxsCheck Operator
highlight default link mxsField Identifier
highlight default link mxsStatement Statement
highlight default link mxsModifier Statement
highlight default link mxsPacket Type
highlight default link mxsVerb Function
highlight default link mxsKnown Constant
highlight default link mxsFunction Function
highlight default link mxsValue Special
highlight default link mxsNumber Number
highlight default link mxsText String
highlight default link mxsComment Comment
let b:current_syntax = "mxs"
"""


def vim() -> str:
    """The syntax file."""
    taken = {*STATEMENTS, *MODIFIERS}
    return _VIM % {
        "head": r"\|".join(sorted(KEYS)),
        "statements": _listed(STATEMENTS),
        "modifiers": _listed(MODIFIERS),
        "packets": _listed([*PACKETS, *ALIASES, FRAME]),
        "verbs": _listed({*VERBS, *FLAGS} - taken),
        "known": _listed({*KNOWN_WORDS, *CONSTANTS} - taken),
        "functions": _listed(FUNCTIONS),
    }


def _listed(words: Iterable[str]) -> str:
    return " ".join(sorted(words))
