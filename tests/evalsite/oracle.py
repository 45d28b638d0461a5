"""What verdicts, dispositions and figures come to, told a second time and plainly.

Written from docs/design.md sections 6 and 7 alone, over plain dicts, without a line of the product.
`standing` gives "pass", "fail" or the next action of what is open.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

Row = dict[str, Any]
ACTIONS = ["repair_evidence", "fix_fixture", "clarify_contract", "rerun_judge", "rerun_trial"]
ACTIONS += ["grade", "adjudicate", "calibrate_judge"]
CLASSES = ["outcome", "constraint", "semantic"]


def standing(need: Row, trial: Row) -> str:
    if need["marks"] or need["has_faulty_fixture"]:
        is_faulty = "defective" in need["marks"] or need["has_faulty_fixture"]
        return "fix_fixture" if is_faulty else "clarify_contract"
    under = [v for v in trial["verdicts"] if not v["is_outdated"] and applies(v, need)]
    loud = [v for v in under if v["kind"] == "code" or v["calibrated"] or v["signed_in"]]
    taken_back = [(v["corrects"], v["grader"], v["kind"]) for v in loud if v["kind"] == "human"]
    loud = [v for v in loud if v["is_blind"] or (v["id"], v["grader"], v["kind"]) not in taken_back]
    votes = [v for v in loud if not gives_way(v, loud)]
    code = {v["value"] for v in votes if v["kind"] == "code"}
    others = {v["value"] for v in votes if v["kind"] != "code"}
    absent = set(need["graders"]) - {(v["grader"], v["kind"]) for v in votes}
    if need["source"] == "check" or (need["source"] == "external" and not need["graders"]):
        if not code:
            return "repair_evidence"
    elif need["source"] == "external" and any(kind == "code" for _, kind in absent):
        return "repair_evidence"
    if code and code != {"pass"}:
        later = "repair_evidence" if "unknown" in code else "clarify_contract"
        return "fail" if "fail" in code else later
    if code and "fail" not in others:
        return "grade" if absent or others - {"pass"} else "pass"
    about = {a["id"]: a for a in trial["adjudications"] if a["of"] == need["name"]}
    chain = [a for a in about.values() if same_question(a, need)]
    chain = [a for a in chain if a["digest"] == need["digest"] != ""] or chain
    heads = [a for a in chain if not any(comes_after(b, a, about) for b in chain)]
    if chain and len(heads) != 1:
        return "adjudicate"
    if heads and (
        heads[0]["says"] != "repair_evidence" or trial["evidence"] <= heads[0]["evidence"]
    ):
        return str(heads[0]["says"])
    if code or {"pass", "fail"} <= others or {"pass", "unknown"} <= others:
        return "adjudicate"
    if not others:
        return "calibrate_judge" if "model" in [v["kind"] for v in under] else "grade"
    for value, comes_to in {"fail": "fail", "error": "rerun_judge", "unknown": ACTIONS[0]}.items():
        if value in others:
            return comes_to
    return "grade" if absent else "pass"


def applies(verdict: Row, need: Row) -> bool:
    from_file = verdict["imported"] and need["source"] in ("rubric", "external")
    versions = {need["rubric"], verdict["rubric"]} - {""}
    return verdict["of"] == need["name"] and (
        verdict["contract"] == need["contract"]
        or verdict["digest"] == need["digest"] != ""
        or (from_file and len(versions) < 2)
    )


def same_question(adjudication: Row, need: Row) -> bool:
    if need["rubric"] == need["digest"] == "":
        return bool(adjudication["rubric"] == adjudication["digest"] == "")
    return any(adjudication[at] == need[at] != "" for at in ("rubric", "digest"))


def comes_after(later: Row, earlier: Row, among: dict[str, Row]) -> bool:
    """Whether one adjudication replaces another, or one that does, and so on."""
    at = later["replaces"]
    while at is not None and at != earlier["id"]:
        at = among[at]["replaces"] if at in among else None
    return at is not None


def gives_way(verdict: Row, loud: list[Row]) -> bool:
    own = [v for v in loud if all(v[at] == verdict[at] for at in ("grader", "version", "kind"))]
    if verdict["value"] == "error":
        return {v["value"] for v in own} != {"error"}
    unknown = [v["evidence"] for v in own if v["value"] == "unknown"]
    decided = [v["evidence"] for v in own if v["value"] in ("pass", "fail")]
    return (
        verdict["value"] == "unknown" and bool(unknown) and max(decided, default=-1) > max(unknown)
    )


def needs_of(trial: Row) -> list[Row]:
    """Those of the contract; without one every criterion from files that is ever mandatory."""
    files = [v for v in trial["verdicts"] if v["imported"]]
    if trial["needs"] is not None:
        return list(trial["needs"])
    plain = {"source": "imported", "mandatory": True, "is_prohibition": False, "graders": []}
    plain |= {"marks": [], "has_faulty_fixture": False, "contract": "", "digest": "", "rubric": ""}
    needs = []
    for name in sorted({v["of"] for v in files if v["mandatory"]}):
        about = [v for v in files if v["of"] == name]
        told = {v["class"] for v in about if v["kind"] == "code"} or {v["class"] for v in about}
        needs.append({**plain, "name": name, "class": min(told, key=CLASSES.index)})
    return needs


def disposition(trial: Row) -> tuple[str, list[str]]:
    """The disposition with its failed classes or next actions."""
    says = [(need, standing(need, trial)) for need in needs_of(trial) if need["mandatory"]]
    failed = [need for need, word in says if word == "fail"]
    if trial["is_broken"]:
        failed = [need for need in failed if need["is_prohibition"]]
    classes = {need["class"] for need in failed}
    if failed:
        return "fail", [c for c in CLASSES if c in classes]
    if trial["is_broken"]:
        return "harness_error", ["rerun_trial"]
    todo = {word for _, word in says} - {"pass"} | ({ACTIONS[0]} if trial["lacks"] else set())
    todo |= set() if says else {"clarify_contract"}
    return ("unresolved", [a for a in ACTIONS if a in todo]) if todo else ("pass", [])


def word_for(trial: Row, figure: str) -> str:
    """What a figure counts of a trial: "pass", "fail", or anything else where it cannot tell."""
    if figure == "passing":
        return disposition(trial)[0]
    classes = {"outcome": ["outcome"], "clean": ["outcome", "constraint"]}[figure]
    needs = [n for n in needs_of(trial) if n["mandatory"] and n["class"] in classes]
    if trial["is_broken"]:
        needs = [n for n in needs if n["is_prohibition"] and standing(n, trial) == "fail"]
    said = {standing(n, trial) for n in needs}
    return "fail" if "fail" in said else "pass" if said == {"pass"} else "unknown"


def figures(suite: Row, k: int, figure: str) -> Row:
    """Passed, graded and run slots; mean pass^k of the graded; its ends over slots."""
    slots = {}
    for trial in sorted(suite["trials"], key=lambda t: t["attempt"]):
        slots[trial["run"], trial["task"], trial["label"]] = trial
    said: dict[str, list[str]] = {}
    for (_, task, _), trial in slots.items():
        if trial["environment"] == "test" and not trial["fault"]:
            said.setdefault(task, []).append(word_for(trial, figure))
    for run, task, declared in suite["declared"]:
        there = [key for key in slots if key[:2] == (run, task)]
        said.setdefault(task, []).extend(["missing"] * (declared - len(there)))
    said = {task: words for task, words in said.items() if words and task not in suite["tuning"]}
    graded = {t: [w for w in words if w in ("pass", "fail")] for t, words in said.items()}
    best = {t: ["pass" if w != "fail" else w for w in words] for t, words in said.items()}
    return {
        "passed": sum(words.count("pass") for words in said.values()),
        "graded": sum(map(len, graded.values())),
        "run": sum(map(len, said.values())),
        "pass_hat_k": mean_pass_hat_k(graded, k),
        "left_out": sorted(task for task, words in graded.items() if len(words) < k),
        "ends": (mean_pass_hat_k(said, k), mean_pass_hat_k(best, k))
        if said and all(len(words) >= k for words in said.values())
        else None,
    }


def mean_pass_hat_k(said: dict[str, list[str]], k: int) -> Fraction | None:
    """By counting: of all ways to draw k trials of a task, those in which every one passes."""
    each = []
    for words in said.values():
        draws = [set(draw) == {"pass"} for draw in combinations(words, k)]
        each += [Fraction(sum(draws), len(draws))] if draws else []
    return sum(each, Fraction(0)) / len(each) if each else None
