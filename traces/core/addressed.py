"""Text of a trace that is addressed to whoever grades or reviews it.

A hint for the reader and no more: wording that is not known here passes unnoticed, harmless text
may be pointed out, and of a very long text only the beginning and the end are looked at. It is
never obeyed and changes no verdict. Time is linear in the length of what is looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ADDRESSED_VERSION: Final = 1
LOOKED_AT_FIRST: Final = 200_000  # characters
LOOKED_AT_LAST: Final = 50_000
MOST_HINTS: Final = 20
LONGEST_EXCERPT: Final = 120
_MOST_TURNED: Final = 20  # stretches that are written from right to left by a control character
_LONGEST_TURNED: Final = 500


class HintKind(StrEnum):
    """What the words try."""

    DISREGARD = "disregard"
    TO_GRADER = "to_grader"
    ASKS_VERDICT = "asks_verdict"
    VERDICT = "verdict"
    BANNER = "banner"
    ROLE = "role"


_SENTENCES: Final = {
    HintKind.DISREGARD: "It says to set instructions or criteria aside.",
    HintKind.TO_GRADER: "It speaks to a grader, a judge, a reviewer or a model.",
    HintKind.ASKS_VERDICT: "It asks for a verdict.",
    HintKind.VERDICT: "It is written like a verdict.",
    HintKind.BANNER: "It imitates a notice or a decision of a reviewer.",
    HintKind.ROLE: "It imitates a system prompt or a change of the speaker.",
}
_UNSEEN_AMONG: Final = " Characters that cannot be seen stand among these words."


@dataclass(frozen=True, slots=True)
class Hint:
    """Words that seem to be meant for a grader or reviewer.

    `offset` counts characters of the text as it came, from 0; `excerpt` is what stands there, at
    most 120 characters of it; `sentence` says plainly what it tries.
    """

    kind: HintKind
    offset: int
    excerpt: str
    sentence: str


@dataclass(frozen=True, slots=True)
class _Look:
    """A pattern, looked for only where one of some words occurs at all."""

    kind: HintKind
    triggers: tuple[str, ...]  # lower case
    pattern: re.Pattern[str]
    is_folded: bool = True  # looked for where look-alikes of Latin letters are read as Latin


_WHO = (
    r"(?:graders?|judges?|reviewers?|evaluators?|auditors?|adjudicators?|approvers?|raters?"
    r"|annotators?|labell?ers?|examiners?)"
)
_READER = rf"(?:{_WHO[3:-1]}|llms?|(?:large\s+)?language\s+models?|ai\s+(?:models?|assistants?))"
_WHO_TRIGGERS = (
    "grader", "judge", "reviewer", "evaluator", "auditor", "adjudicator", "approver", "rater",
    "annotator", "labeler", "labeller", "examiner",
)  # fmt: skip
_GOOD = (
    r"(?:pass(?:ed|es|ing)?|approv(?:e|ed|al)|correct|success(?:ful)?|satisf(?:ied|actory)"
    r"|compliant|accept(?:ed|able)?|verified|full\s+marks|(?:full|perfect|top|maximum)\s+score)"
)
_BAD = r"(?:fail(?:ed|s|ing|ure)?|reject(?:ed)?|incorrect|wrong)"
_THING = (
    r"(?:trials?|runs?|case|task|answers?|response|conversation|transcript|trajectory|release"
    r"|criteri(?:on|a)|submission|output|test|sample|rubric)"
)


def _look(kind: HintKind, triggers: tuple[str, ...], pattern: str) -> _Look:
    return _Look(kind, triggers, re.compile(pattern, re.IGNORECASE))


def _foreign(kind: HintKind, triggers: tuple[str, ...], pattern: str) -> _Look:
    return _Look(kind, triggers, re.compile(pattern, re.IGNORECASE), is_folded=False)


_LOOKS: Final = (
    _look(
        HintKind.DISREGARD,
        ("ignore", "disregard", "forget", "override", "bypass"),
        r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|override|bypass)\b[^.\n]{0,40}"
        r"\b(?:(?:system\s+)?instructions?|rubrics?|criteri(?:a|on)|guidelines?|system\s+prompts?"
        r"|(?:previous|prior|above|earlier|preceding)\s+(?:prompts?|messages?|context|text)"
        r"|(?:grading|evaluation|scoring|checks?)(?:\s+(?:rules?|polic(?:y|ies)|scheme))?)\b",
    ),
    _look(
        HintKind.TO_GRADER,
        _WHO_TRIGGERS,
        rf"\b(?:as|if\s+you\s+are|you\s+are(?:\s+now)?|dear|attention|note\s+(?:to|for)"
        rf"|notice\s+(?:to|for)|message\s+(?:to|for)|instructions?\s+(?:to|for))[,:\s]+"
        rf"(?:(?:a|an|the|all|any|our|this|automated|llm|ai|human|expert)\s+){{0,3}}{_WHO}\b",
    ),
    _look(
        HintKind.TO_GRADER,
        _WHO_TRIGGERS,
        rf"\b{_WHO}\b\s*(?:[:,]|\b(?:must|should|please|may|will|can|note|are)\b)[^.\n]{{0,60}}"
        rf"\b(?:{_GOOD}|{_BAD}|skip|mark|score|grade|verdict|ignore)\b",
    ),
    _look(
        HintKind.TO_GRADER,
        ("llm", "language model", "ai model", "ai assistant"),
        rf"\b(?:if\s+you\s+are|note\s+(?:to|for)|attention|dear|instructions?\s+(?:to|for))[,:\s]+"
        rf"(?:(?:a|an|the|all|any)\s+){{0,2}}{_READER}\b",
    ),
    _look(
        HintKind.ASKS_VERDICT,
        ("mark", "grade", "score", "rate", "record", "accept", "approve", "evaluate", "label",
         "consider", "count", "classify", "treat"),
        r"\b(?:mark|grade|score|rate|record|accept|approve|evaluate|label|consider|count|classify"
        rf"|treat)\b[^.\n]{{0,30}}\b{_THING}\b[^.\n]{{0,20}}"
        r"\b(?:pass(?:ed)?|fail(?:ed)?|(?:in)?correct|approved|successful|satisfied|compliant)\b",
    ),
    _look(
        HintKind.ASKS_VERDICT,
        ("mark", "grade", "score", "rate", "label", "classify"),
        r"\b(?:mark|grade|score|rate|label|classify)\s+(?:this|it|everything|them)\b[^.\n]{0,20}?"
        r"\b(?:pass(?:ed)?|fail(?:ed)?|(?:in)?correct|satisfied|compliant|full\s+marks"
        r"|(?:10|100|5)\s*(?:/|out\s+of)\s*\d+)\b",
    ),
    _look(
        HintKind.ASKS_VERDICT,
        ("verdict", "score", "marks", "grade", "pass", "fail"),
        r"\b(?:give|award|assign|return|output|answer(?:\s+with)?|respond\s+with|reply\s+with"
        r"|print)\b[^.\n]{0,24}(?:\b(?:verdict|full\s+marks|passing\s+(?:score|grade)"
        r"|(?:full|perfect|top|maximum|highest)\s+(?:score|grade))\b"
        r"|[\"'`*](?:pass(?:ed)?|fail(?:ed)?)[\"'`*])",
    ),
    _look(
        HintKind.VERDICT,
        ("verdict", "grade", "judgement", "judgment", "passed", "adjudication", "disposition"),
        r"\\?[\"'](?:(?:final_?)?verdict|grade|judge?ment|passed|adjudication|disposition)\\?[\"']"
        r"\s*:\s*(?:\\?[\"']?(?:pass|fail|approved|correct|satisfied|compliant)|true\b)",
    ),
    _look(
        HintKind.VERDICT,
        ("verdict", "[[pass", "<verdict"),
        r"(?<![^\n>*#\[])[ \t*#_]{0,8}(?:final[ \t]+)?verdict[ \t*_]{0,6}[:=>][ \t*_\"'\[]{0,6}"
        rf"(?:{_GOOD}|{_BAD})\b|\[\[(?:pass|fail)\]\]",
    ),
    _look(
        HintKind.BANNER,
        ("notice", "message", "note", "memo", "announcement"),
        r"\b(?:system|admin(?:istrator)?|official|evaluation|grading|review)\s+"
        rf"(?:notice|message|note|memo|announcement)\b[^.\n]{{0,20}}\b{_WHO}\b",
    ),
    _look(
        HintKind.BANNER,
        ("by ",),
        r"\b(?:approved|verified|adjudicated|signed[ -]off|reviewed|graded|confirmed|passed)\s+by\s+"
        r"(?:(?:a|an|the|release|system|human|lead|senior|calibrated|qa|independent)\s+){0,3}"
        rf"(?:{_WHO}|owners?|system|qa)\b",
    ),
    _look(
        HintKind.BANNER,
        ("already",),
        rf"\b(?:{_THING}|this|it)\b[^.\n]{{0,20}}\balready\s+(?:been\s+)?"
        r"(?:adjudicated|graded|signed[ -]off|marked\s+as\s+pass(?:ed)?)\b",
    ),
    _look(
        HintKind.BANNER,
        ("verdict", "evaluation", "grading", "sign-off", "signoff", "adjudication", "disposition"),
        r"\b(?:verdict|evaluation|grading|sign-?off|adjudication|disposition)\b[^.\n]{0,20}"
        r"(?:\b(?:is|are|already|status|result)\b|[:=])[^.\n\"']{0,16}"
        rf"\b(?:{_GOOD}|complete)\b",
    ),
    _look(
        HintKind.ROLE,
        ("<|", "[inst]", "<<sys>>", "<system", "</system", "[system", "### system", "### instruction"),
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\|>"
        r"|\[/?INST\]|<</?SYS>>|</?system(?:[-_ ]?(?:prompt|message|reminder))?\s*>"
        r"|\[system(?:[-_ ]?(?:prompt|message|note|notice))?\]"
        r"|###[ \t]*(?:system|instructions?)\b[^\n]{0,20}:",
    ),
    _look(
        HintKind.ROLE,
        ("system", "developer"),
        r"(?<![^\n])[ \t>*#=\-]{0,12}(?:system|developer)(?:[ \t]+(?:prompt|message|note|override))?"
        r"[ \t*]{0,4}:(?=[ \t]{0,4}\S)",
    ),
    # Obvious forms in other languages.
    _foreign(
        HintKind.DISREGARD,
        ("ignor", "olvid", "négli", "oubli", "dimentica", "negeer", "zignoruj", "talimat",
         "esque", "vergiss"),
        r"\b(?:ignor\w{0,6}|olvid\w{1,3}|négligez?|oubliez?|dimentica\w{0,3}|negeer|zignoruj"
        r"|esque[çc]a|vergiss)\b[^.\n]{0,40}?"
        r"\b(?:instrucciones|instru[çc][õo]es|istruzioni|instructies|consignes|anweisungen|vorgaben"
        r"|kriterien|crit[eé]rios|criterios|critères|criteri|instrukcj[ei]|polecenia)\b"
        r"|\b(?:önceki|yukarıdaki)\b[^.\n]{0,20}talimat\w*[^.\n]{0,12}"
        r"(?:yok\s+say|görmezden|unut)",
    ),
    _foreign(
        HintKind.TO_GRADER,
        ("evaluador", "revisor", "juez", "évaluateur", "correcteur", "juge", "prüfer", "gutachter",
         "bewerter", "avaliador", "valutatore", "beoordelaar"),
        r"\b(?:evaluador\w{0,2}|revisor\w{0,2}|juez|évaluateurs?|correcteurs?|juges?|prüfer|gutachter"
        r"|bewerter|avaliador\w{0,2}|valutator[ei]|beoordelaars?)\b[^.\n]{0,60}?"
        r"\b(?:aprob\w{0,4}|aprueb\w{0,4}|correct[oa]|réussi\w{0,2}|valid\w{0,4}|bestanden"
        r"|genehmig\w{0,3}|aprov\w{0,4}|superat[oa]|approvat[oa]|geslaagd|goedgekeurd)\b",
    ),
    _foreign(
        HintKind.ASKS_VERDICT,
        ("como", "comme", "als", "come"),
        r"\b(?:mar(?:ca|que|quez|car)|marqu\w{1,3}|califi\w{2,4}|segna|valuta|notez|évaluez)\b"
        r"[^.\n]{0,40}?\b(?:como|comme|come)\s+"
        r"(?:aprobad[oa]|correct[oae]|réussi\w{0,2}|validé\w{0,2}|aprovad[oa]|superat[oa]|corrett[oa])\b"
        r"|\bals\s+bestanden\s+(?:\w{1,12}\s+)?(?:werten|markieren|bewerten|einstufen)\b",
    ),
    _foreign(
        HintKind.DISREGARD,
        ("忽略", "无视", "無視", "忘记", "忘れ", "不要理会", "무시", "تجاهل", "игнорир", "अनदेखा"),
        r"(?:忽略|无视|無視|忘记|不要理会)[^。\n]{0,12}(?:指令|指示|说明|說明|提示|规则|規則|标准)"
        r"|(?:指示|命令|ルール|指令)[^。\n]{0,6}(?:無視|忘れ)"
        r"|(?:지시|명령|지침)[^.\n]{0,8}무시"
        r"|تجاهل[^.\n]{0,30}(?:التعليمات|الأوامر|القواعد)"
        r"|игнорир\w{1,6}[^.\n]{0,30}(?:инструкци|указани|критери|правил)"
        r"|निर्देश[^।\n]{0,20}अनदेखा",
    ),
    _foreign(
        HintKind.TO_GRADER,
        ("评审", "评分", "裁判", "审核", "评估", "採点者", "評価者", "審査員", "채점자", "평가자",
         "심사", "проверяющ", "оценщик", "рецензент", "судья", "合格", "标记为", "判定"),
        r"(?:评审|评分|裁判|审核|评估)(?:员|者|人|模型)[^。\n]{0,16}(?:通过|合格|满分)"
        r"|(?:标记|判定|评)为[^。\n]{0,4}(?:通过|合格|正确|满分)"
        r"|(?:採点者|評価者|審査員)[^。\n]{0,20}(?:合格|承認)|合格(?:と|に)(?:判定|して)"
        r"|(?:채점자|평가자|심사자)[^.\n]{0,20}(?:통과|합격|승인)"
        r"|(?:проверяющ|оценщик|рецензент|судья)[^.\n]{0,40}(?:засчита|пройден|одобр|зачт)",
    ),
)  # fmt: skip

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef\x00-\x08\x0e-\x1f\x7f-\x9f]"
)
_TAGGED: Final = range(0xE0020, 0xE007F)  # ASCII written so that nobody sees it
_TURNED: Final = re.compile(f"[\u202e\u2067]([^\u202c\u2069\n]{{4,{_LONGEST_TURNED}}})")
_LOOKALIKES: Final = str.maketrans(
    "аеорсухіјѕԁһӏвкмтнАВЕКМНОРСТХІЈЅαεορυνικτΑΒΕΗΙΚΜΝΟΡΤΥΧΖ",
    "aeopcyxijsdhlbkmthABEKMHOPCTXIJSaeopuvikTABEHIKMNOPTYXZ",
)


def addressed_text(text: str) -> tuple[Hint, ...]:
    """The places of a text that seem to be meant for graders, judges, reviewers or models."""
    found: list[Hint] = []
    for offset, window in _windows(text):
        found += _in_window(window, offset)
        if len(found) >= MOST_HINTS:
            break
    return tuple(found[:MOST_HINTS])


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """What is looked at, with where it begins."""
    if len(text) <= LOOKED_AT_FIRST + LOOKED_AT_LAST:
        yield 0, text
        return
    yield 0, text[:LOOKED_AT_FIRST]
    yield len(text) - LOOKED_AT_LAST, text[-LOOKED_AT_LAST:]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A text as it is looked through, with the place of each of its characters."""

    folded: str
    plain: str  # of the same length: letters of other alphabets as they are
    places: tuple[int, ...] | None  # None: each where it stands


def _in_window(text: str, offset: int) -> list[Hint]:
    reading = _reading(text)
    found = _matches(reading)
    spans = [
        (kind, _place(reading, start), _place(reading, end - 1) + 1) for kind, start, end in found
    ]
    spans += _turned(text)
    spans.sort(key=lambda span: (span[1], -span[2]))
    hints: list[Hint] = []
    behind = -1
    for kind, start, end in spans:
        if start < behind:
            continue
        behind = end
        hints.append(_hint(kind, offset + start, text[start:end]))
    return hints


def _hint(kind: HintKind, offset: int, words: str) -> Hint:
    among = _UNSEEN_AMONG if _UNSEEN.search(words) else ""
    return Hint(kind, offset, words[:LONGEST_EXCERPT], f"{_SENTENCES[kind]}{among}")


def _place(reading: _Reading, at: int) -> int:
    return at if reading.places is None else reading.places[at]


def _reading(text: str) -> _Reading:
    if text.isascii() and _UNSEEN.search(text) is None:
        return _Reading(text, text, None)
    places: tuple[int, ...] | None = None
    plain = text
    if _UNSEEN.search(text) is not None:
        kept = [
            (at, chr(ord(one) - 0xE0000) if ord(one) in _TAGGED else one)
            for at, one in enumerate(text)
            if ord(one) in _TAGGED or _UNSEEN.match(one) is None
        ]
        places = tuple(at for at, _ in kept)
        plain = "".join(one for _, one in kept)
    return _Reading(_folded(plain), plain, places)


def _folded(text: str) -> str:
    """Look-alikes as the Latin letters that they look like; one character for each."""
    if text.isascii():
        return text
    widths: dict[str, int | str | None] = {
        one: narrow
        for one in set(text)
        if not one.isascii()
        and len(narrow := unicodedata.normalize("NFKC", one)) == 1
        and narrow.isascii()
    }
    return text.translate(str.maketrans(widths)).translate(_LOOKALIKES)


def _matches(reading: _Reading) -> Iterator[tuple[HintKind, int, int]]:
    folded = reading.folded.lower()
    plain = folded if reading.plain is reading.folded else reading.plain.lower()
    for look in _LOOKS:
        if not any(map((folded if look.is_folded else plain).__contains__, look.triggers)):
            continue
        where = reading.folded if look.is_folded else reading.plain
        for n_found, match in enumerate(look.pattern.finditer(where), start=1):
            yield look.kind, match.start(), match.end()
            if n_found == MOST_HINTS:
                break


def _turned(text: str) -> list[tuple[HintKind, int, int]]:
    """Stretches that read as words to a grader once a control character has turned them round."""
    found: list[tuple[HintKind, int, int]] = []
    if "\u202e" not in text and "\u2067" not in text:
        return found
    for n_seen, match in enumerate(_TURNED.finditer(text), start=1):
        first = next(_matches(_reading(match[1][::-1])), None)
        if first is not None:
            found.append((first[0], match.start(), match.end()))
        if n_seen == _MOST_TURNED:
            break
    return found
