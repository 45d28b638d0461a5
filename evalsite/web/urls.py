"""The addresses of the pages that join traces and reviews."""

from django.urls import path

from evalsite.web import (
    accepted,
    case_work,
    cases,
    contract_editing,
    contract_proposals,
    contracts,
    evidence_form,
    exports,
    families,
    flags,
    mark_form,
    overview,
    path_accept,
    production,
    regrades,
    release,
    task,
    task_diagnostics,
    task_from_trial,
    task_tree,
    tasks,
    trial,
    verdict_form,
)

urlpatterns = [
    path("systems/<slug:slug>/", tasks.system_start, name="system-start"),
    path("systems/<slug:slug>/tasks/", tasks.task_list, name="task-list"),
    path("systems/<slug:slug>/tasks/<uuid:task>/", task.task_page, name="task-detail"),
    path("systems/<slug:slug>/tasks/<uuid:task>/tree/", task_tree.task_tree, name="task-tree"),
    path(
        "systems/<slug:slug>/tasks/<uuid:task>/diagnostics/",
        task_diagnostics.task_diagnostics,
        name="task-diagnostics",
    ),
    path(
        "systems/<slug:slug>/tasks/<uuid:task>/accepted/",
        accepted.accepted_paths,
        name="accepted-paths",
    ),
    path(
        "systems/<slug:slug>/tasks/<uuid:task>/accept/", path_accept.path_accept, name="path-accept"
    ),
    path(
        "systems/<slug:slug>/tasks/<uuid:task>/accepted/<uuid:path>/withdraw/",
        accepted.path_withdraw,
        name="path-withdraw",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/",
        release.release_page,
        name="release-detail",
    ),
    path("systems/<slug:slug>/flags/", flags.flag_list, name="flag-list"),
    path("systems/<slug:slug>/flags/<uuid:flag>/", flags.flag_detail, name="flag-detail"),
    path("systems/<slug:slug>/trials/<uuid:trial>/flag/", flags.flag_new, name="flag-new"),
    path("systems/<slug:slug>/trials.csv", exports.trials_csv, name="trials-csv"),
    path("systems/<slug:slug>/trials.jsonl", exports.trials_jsonl, name="trials-jsonl"),
    path("systems/<slug:slug>/trials/<uuid:trial>/", trial.trial_page, name="trial-detail"),
    path("systems/<slug:slug>/trials/<uuid:trial>/raw", trial.trial_raw, name="trial-raw"),
    path(
        "systems/<slug:slug>/trials/<uuid:trial>/steps/<int:step>/content",
        trial.step_content,
        name="step-content",
    ),
    path("systems/<slug:slug>/overview/", overview.overview, name="overview"),
    path("systems/<slug:slug>/overview.csv", overview.overview_csv, name="overview-csv"),
    path("systems/<slug:slug>/overview.json", overview.overview_json, name="overview-json"),
    path("systems/<slug:slug>/production/", production.production, name="production"),
    path("systems/<slug:slug>/contracts/", contracts.contract_list, name="contract-list"),
    path(
        "systems/<slug:slug>/contracts/tasks/<uuid:task>/",
        contracts.contract_detail,
        name="contract-detail",
    ),
    path(
        "systems/<slug:slug>/contracts/versions/<uuid:version>/",
        contracts.contract_version,
        name="contract-version",
    ),
    path("systems/<slug:slug>/contracts/export", contracts.contract_export, name="contract-export"),
    path(
        "systems/<slug:slug>/contracts/edit/", contract_editing.contract_form, name="contract-form"
    ),
    path(
        "systems/<slug:slug>/contracts/load/", contract_editing.contract_load, name="contract-load"
    ),
    path(
        "systems/<slug:slug>/contracts/previews/<uuid:preview>/",
        contract_proposals.contract_preview,
        name="contract-preview",
    ),
    path(
        "systems/<slug:slug>/contracts/previews/<uuid:preview>/propose",
        contract_proposals.contract_propose,
        name="contract-propose",
    ),
    path(
        "systems/<slug:slug>/contracts/proposals/<int:number>/",
        contract_proposals.contract_proposal,
        name="contract-proposal",
    ),
    path(
        "systems/<slug:slug>/contracts/proposals/<int:number>/decide",
        contract_proposals.contract_decide,
        name="contract-decide",
    ),
    path(
        "systems/<slug:slug>/contracts/proposals/<int:number>/withdraw",
        contract_proposals.contract_withdraw,
        name="contract-withdraw",
    ),
    path("systems/<slug:slug>/regrades/", regrades.regrade_list, name="regrade-list"),
    path("systems/<slug:slug>/regrades/new", regrades.regrade_new, name="regrade-new"),
    path(
        "systems/<slug:slug>/regrades/<int:number>/", regrades.regrade_detail, name="regrade-detail"
    ),
    path(
        "systems/<slug:slug>/regrades/<int:number>/work", regrades.regrade_work, name="regrade-work"
    ),
    path("systems/<slug:slug>/cases/", cases.case_list, name="case-list"),
    path("systems/<slug:slug>/cases/<uuid:case>/", cases.case_detail, name="case-detail"),
    path("systems/<slug:slug>/cases/<uuid:case>/assign", case_work.case_assign, name="case-assign"),
    path("systems/<slug:slug>/cases/assign", case_work.cases_assign, name="cases-assign"),
    path("systems/<slug:slug>/cases/<uuid:case>/due", case_work.case_due, name="case-due"),
    path(
        "systems/<slug:slug>/cases/<uuid:case>/comment", case_work.case_comment, name="case-comment"
    ),
    path(
        "systems/<slug:slug>/cases/<uuid:case>/set-aside",
        case_work.case_set_aside,
        name="case-set-aside",
    ),
    path(
        "systems/<slug:slug>/cases/<uuid:case>/take-up", case_work.case_take_up, name="case-take-up"
    ),
    path("systems/<slug:slug>/cases/<uuid:case>/rerun", case_work.case_rerun, name="case-rerun"),
    path(
        "systems/<slug:slug>/trials/<uuid:trial>/evidence/",
        evidence_form.evidence_form,
        name="evidence-form",
    ),
    path("systems/<slug:slug>/trials/<uuid:trial>/mark/", mark_form.mark_form, name="mark-form"),
    path(
        "systems/<slug:slug>/marks/<uuid:mark>/withdraw",
        mark_form.mark_withdraw,
        name="mark-withdraw",
    ),
    path(
        "systems/<slug:slug>/trials/<uuid:trial>/verdict/",
        verdict_form.verdict_form,
        name="verdict-form",
    ),
    path(
        "systems/<slug:slug>/trials/<uuid:trial>/task/",
        task_from_trial.task_from_trial,
        name="task-from-trial",
    ),
    path("systems/<slug:slug>/families/", families.family_list, name="family-list"),
    path("systems/<slug:slug>/families/split", families.change_split, name="change-split"),
    path(
        "systems/<slug:slug>/tasks/<uuid:task>/exposure",
        families.note_exposure,
        name="note-exposure",
    ),
]
