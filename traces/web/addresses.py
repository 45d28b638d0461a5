"""Addresses of a system's pages, built without resolving each one anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

Value = str | int | uuid.UUID | Iterable[str] | None


def address(path: str, values: Mapping[str, Value], *, place: str = "") -> str:
    """A path with a query of the values that are not empty, and a place on the page."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, str | int | uuid.UUID):
            pairs.append((name, str(value)))
        else:
            pairs.extend((name, item) for item in value)
    query = f"?{urlencode(pairs)}" if pairs else ""
    return f"{path}{query}{place}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one system. `root` ends with a slash."""

    root: str

    @classmethod
    def of(cls, slug: str) -> Addresses:
        """The addresses of the system of that slug."""
        return cls(reverse("task-list", kwargs={"slug": slug}).removesuffix("tasks/"))

    @property
    def tasks(self) -> str:
        return f"{self.root}tasks/"

    def task(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/"

    def compare(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/compare/"

    def tree(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/tree/"

    def diagnostics(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/diagnostics/"

    def register(self, task: uuid.UUID) -> str:
        """The accepted paths of a task."""
        return f"{self.root}tasks/{task}/accepted/"

    def accept(self, task: uuid.UUID) -> str:
        """The form that accepts a path of a task."""
        return f"{self.root}tasks/{task}/accept/"

    def withdraw(self, task: uuid.UUID, path: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/accepted/{path}/withdraw/"

    @property
    def rules(self) -> str:
        return f"{self.root}rules/"

    @property
    def rule_form(self) -> str:
        """The form that makes, changes or drops a rule, or says the kind of a tool."""
        return f"{self.root}rules/edit/"

    def rules_preview(self, preview: uuid.UUID) -> str:
        return f"{self.root}rules/previews/{preview}/"

    def rules_version(self, number: int) -> str:
        return f"{self.root}rules/versions/{number}/"

    @property
    def overview(self) -> str:
        return f"{self.root}overview/"

    @property
    def production(self) -> str:
        """The page of production traces, which enter no figure."""
        return f"{self.root}production/"

    @property
    def contracts(self) -> str:
        return f"{self.root}contracts/"

    @property
    def contract_form(self) -> str:
        """The editor of a contract; takes ?task=."""
        return f"{self.root}contracts/edit/"

    @property
    def contract_load(self) -> str:
        """The form that takes a file of contracts."""
        return f"{self.root}contracts/load/"

    @property
    def contract_export(self) -> str:
        return f"{self.root}contracts/export"

    def contract_of(self, task: uuid.UUID) -> str:
        """The contract of a task: the version in effect and its history."""
        return f"{self.root}contracts/tasks/{task}/"

    def contract_version(self, version: uuid.UUID) -> str:
        return f"{self.root}contracts/versions/{version}/"

    def contract_preview(self, preview: uuid.UUID) -> str:
        return f"{self.root}contracts/previews/{preview}/"

    def contract_proposal(self, number: int) -> str:
        return f"{self.root}contracts/proposals/{number}/"

    @property
    def regrades(self) -> str:
        return f"{self.root}regrades/"

    @property
    def new_regrade(self) -> str:
        """Takes a POST: stored trials are graded again."""
        return f"{self.root}regrades/new"

    def regrade(self, number: int) -> str:
        return f"{self.root}regrades/{number}/"

    @property
    def disputes(self) -> str:
        return f"{self.root}disputes/"

    def dispute(self, dispute: uuid.UUID) -> str:
        """A dispute and, for reviewers, the form that decides it."""
        return f"{self.root}disputes/{dispute}/"

    @property
    def decided_disputes(self) -> str:
        """Adjudications, newest first."""
        return f"{self.root}disputes/decided/"

    @property
    def calibration_sets(self) -> str:
        return f"{self.root}labelling/"

    @property
    def new_calibration_set(self) -> str:
        return f"{self.root}labelling/new/"

    @property
    def label_import(self) -> str:
        """The form that brings labels in as a set of their own."""
        return f"{self.root}labelling/import/"

    def calibration_set(self, number: int) -> str:
        return f"{self.root}labelling/{number}/"

    def labelling(self, number: int) -> str:
        """Blind labelling of a set: the item that is reserved for the person."""
        return f"{self.root}labelling/{number}/label/"

    @property
    def judges(self) -> str:
        return f"{self.root}judges/"

    def judge(self, judge: int, criterion: int) -> str:
        """The calibration card of a judge version on a criterion; both by the ids of their rows."""
        return f"{self.root}judges/{judge}/{criterion}/"

    @property
    def probes(self) -> str:
        return f"{self.root}probes/"

    def probe_batch(self, number: int) -> str:
        return f"{self.root}probes/{number}/"

    @property
    def judge_runs(self) -> str:
        return f"{self.root}judge-runs/"

    def judge_run(self, number: int) -> str:
        return f"{self.root}judge-runs/{number}/"

    @property
    def rubrics(self) -> str:
        return f"{self.root}rubrics/"

    @property
    def new_rubric(self) -> str:
        """Takes a POST: the first text of a rubric."""
        return f"{self.root}rubrics/new"

    def rubric(self, rubric: int) -> str:
        return f"{self.root}rubrics/{rubric}/"

    def rubric_version(self, rubric: int) -> str:
        """Takes a POST: a further text of a rubric."""
        return f"{self.root}rubrics/{rubric}/version"

    def rubric_request(self, asked: int) -> str:
        """Takes a POST: a request for a clearer text is closed without one."""
        return f"{self.root}rubrics/requests/{asked}/close"

    @property
    def vouching(self) -> str:
        """Imported human verdicts that wait for a reviewer's word; takes ?trial= and ?group=."""
        return f"{self.root}vouching/"

    @property
    def vouch(self) -> str:
        """Takes a POST: a reviewer vouches for imported verdicts."""
        return f"{self.root}vouching/vouch"

    @property
    def cases(self) -> str:
        return f"{self.root}cases/"

    def case(self, case: uuid.UUID) -> str:
        return f"{self.root}cases/{case}/"

    def case_act(self, case: uuid.UUID, act: str) -> str:
        """Takes a POST: assign, due, comment, set-aside, take-up or rerun."""
        return f"{self.root}cases/{case}/{act}"

    @property
    def assign_cases(self) -> str:
        """Takes a POST: chosen cases of the queue get an assignee."""
        return f"{self.root}cases/assign"

    def evidence_form(self, trial: uuid.UUID) -> str:
        """The form that adds evidence which a trial did not record."""
        return f"{self.root}trials/{trial}/evidence/"

    def mark_form(self, trial: uuid.UUID) -> str:
        """The form that marks a check, fixture or rubric; takes ?criterion=."""
        return f"{self.root}trials/{trial}/mark/"

    def mark_withdraw(self, mark: uuid.UUID) -> str:
        return f"{self.root}marks/{mark}/withdraw"

    def verdict_form(self, trial: uuid.UUID) -> str:
        """The form by which a person gives a verdict; takes ?criterion= and ?corrects=."""
        return f"{self.root}trials/{trial}/verdict/"

    def task_from(self, trial: uuid.UUID) -> str:
        """The form that makes a task of a trial."""
        return f"{self.root}trials/{trial}/task/"

    @property
    def families(self) -> str:
        """The families of tasks with their splits."""
        return f"{self.root}families/"

    @property
    def change_split(self) -> str:
        """Takes a POST."""
        return f"{self.root}families/split"

    def note_exposure(self, task: uuid.UUID) -> str:
        """Takes a POST: a held-out failure was used to change the agent."""
        return f"{self.root}tasks/{task}/exposure"

    @property
    def flags(self) -> str:
        return f"{self.root}flags/"

    def flag(self, flag: uuid.UUID) -> str:
        return f"{self.root}flags/{flag}/"

    def flag_form(self, trial: uuid.UUID) -> str:
        """The form that flags a trial."""
        return f"{self.root}trials/{trial}/flag/"

    @property
    def trials(self) -> str:
        return f"{self.root}trials/"

    def trial(self, trial: uuid.UUID) -> str:
        return f"{self.root}trials/{trial}/"

    def step(self, trial: uuid.UUID, step: int) -> str:
        """A stable link to a step of a trial."""
        return f"{self.root}trials/{trial}/?step={step}#step-{step}"

    def step_content(self, trial: uuid.UUID, step: int) -> str:
        return f"{self.root}trials/{trial}/steps/{step}/content"

    def raw_trial(self, trial: uuid.UUID) -> str:
        return f"{self.root}trials/{trial}/raw"

    @property
    def runs(self) -> str:
        return f"{self.root}runs/"

    def run(self, run: uuid.UUID) -> str:
        return f"{self.root}runs/{run}/"

    @property
    def releases(self) -> str:
        return f"{self.root}releases/"

    def release(self, release: uuid.UUID) -> str:
        return f"{self.root}releases/{release}/"

    @property
    def uploads(self) -> str:
        return f"{self.root}uploads/"

    @property
    def new_upload(self) -> str:
        return f"{self.root}uploads/new/"

    def upload(self, upload: uuid.UUID) -> str:
        return f"{self.root}uploads/{upload}/"

    def raw_upload(self, upload: uuid.UUID) -> str:
        return f"{self.root}uploads/{upload}/raw"

    def raw_line(self, upload: uuid.UUID, line: int) -> str:
        return f"{self.root}uploads/{upload}/lines/{line}/raw"

    def gate(self, release: uuid.UUID) -> str:
        """The gate of a release."""
        return f"{self.root}releases/{release}/gate/"

    def gate_report(self, release: uuid.UUID) -> str:
        """The gate on paper."""
        return f"{self.root}releases/{release}/gate/report/"

    def gate_check(self, release: uuid.UUID, tier: uuid.UUID, kind: str) -> str:
        """The evidence behind one check of a gate."""
        return f"{self.root}releases/{release}/gate/checks/{tier}/{kind}/"

    def sign(self, release: uuid.UUID) -> str:
        """The form that signs a release; takes ?meaning=."""
        return f"{self.root}releases/{release}/sign/"

    def signatures(self, release: uuid.UUID) -> str:
        return f"{self.root}releases/{release}/signatures/"

    def signature(self, release: uuid.UUID, sign_off: uuid.UUID) -> str:
        return f"{self.root}releases/{release}/signatures/{sign_off}/"

    def leave_out(self, run: uuid.UUID) -> str:
        """The form that leaves a run out of its release's gate."""
        return f"{self.root}runs/{run}/leave-out/"

    @property
    def alerts(self) -> str:
        return f"{self.root}alerts/"

    @property
    def thresholds(self) -> str:
        """The risk tiers of the system."""
        return f"{self.root}thresholds/"

    @property
    def tier_tasks(self) -> str:
        """Which task is in which tier."""
        return f"{self.root}thresholds/tasks/"

    @property
    def sample_plan(self) -> str:
        """How many trials a threshold needs; takes ?tier= and ?release=."""
        return f"{self.root}thresholds/plan/"

    def tier(self, tier: uuid.UUID) -> str:
        return f"{self.root}thresholds/{tier}/"

    def threshold_edit(self, tier: uuid.UUID) -> str:
        return f"{self.root}thresholds/{tier}/edit/"

    def threshold_version(self, tier: uuid.UUID, number: int) -> str:
        return f"{self.root}thresholds/{tier}/versions/{number}/"

    @property
    def members(self) -> str:
        return f"{self.root}members/"

    @property
    def api_keys(self) -> str:
        return f"{self.root}keys/"

    @property
    def audit(self) -> str:
        """The audit log; takes ?kind= and ?id= for one object."""
        return f"{self.root}audit/"

    def audit_event(self, seq: int) -> str:
        return f"{self.root}audit/{seq}/"
