"""The addresses of the pages that join traces and reviews."""

from django.urls import path

from evalsite.web import (
    accepted,
    account,
    adjudicate,
    alerts,
    api_keys,
    audit,
    calibration_sets,
    case_work,
    cases,
    contract_editing,
    contract_proposals,
    contracts,
    disputes,
    evidence_form,
    exports,
    families,
    flags,
    gate_acts,
    gates,
    invitation,
    judge_runs,
    judges,
    labelling,
    mark_form,
    members,
    overview,
    path_accept,
    probes,
    production,
    regrades,
    release,
    releases,
    rubrics,
    sample_plan,
    sign_offs,
    signing_keys,
    task,
    task_diagnostics,
    task_from_trial,
    task_tree,
    tasks,
    threshold_edit,
    thresholds,
    tier_tasks,
    trial,
    verdict_form,
    vouching,
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
    path("systems/<slug:slug>/releases/", releases.release_list, name="release-list"),
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
    path("systems/<slug:slug>/disputes/", disputes.dispute_list, name="dispute-list"),
    path("systems/<slug:slug>/disputes.csv", disputes.disputes_csv, name="disputes-csv"),
    path("systems/<slug:slug>/disputes/decided/", disputes.decided_list, name="decided-disputes"),
    path(
        "systems/<slug:slug>/disputes/<uuid:dispute>/",
        adjudicate.dispute_page,
        name="dispute-detail",
    ),
    path(
        "systems/<slug:slug>/disputes/<uuid:dispute>/effect",
        adjudicate.dispute_effect,
        name="dispute-effect",
    ),
    path(
        "systems/<slug:slug>/disputes/<uuid:dispute>/draft",
        adjudicate.dispute_draft,
        name="dispute-draft",
    ),
    path(
        "systems/<slug:slug>/disputes/<uuid:dispute>/undo",
        adjudicate.dispute_undo,
        name="dispute-undo",
    ),
    path(
        "systems/<slug:slug>/disputes/<uuid:dispute>/skip",
        adjudicate.dispute_skip,
        name="dispute-skip",
    ),
    path("systems/<slug:slug>/labelling/", calibration_sets.set_list, name="calibration-set-list"),
    path(
        "systems/<slug:slug>/labelling/new/", calibration_sets.set_new, name="calibration-set-new"
    ),
    path(
        "systems/<slug:slug>/labelling/import/", calibration_sets.label_import, name="label-import"
    ),
    path("systems/<slug:slug>/labelling/reveal", labelling.label_reveal, name="label-reveal"),
    path(
        "systems/<slug:slug>/labelling/<int:number>/",
        calibration_sets.set_page,
        name="calibration-set",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/export",
        calibration_sets.set_export,
        name="calibration-set-export",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/vouch",
        calibration_sets.set_vouch,
        name="calibration-set-vouch",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/withdraw",
        calibration_sets.item_withdraw,
        name="calibration-item-withdraw",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/close",
        calibration_sets.set_close,
        name="calibration-set-close",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/label/", labelling.label_page, name="label-page"
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/label/draft",
        labelling.label_draft,
        name="label-draft",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/label/undo",
        labelling.label_undo,
        name="label-undo",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/label/skip",
        labelling.label_skip,
        name="label-skip",
    ),
    path(
        "systems/<slug:slug>/labelling/<int:number>/label/extend",
        labelling.label_extend,
        name="label-extend",
    ),
    path("systems/<slug:slug>/judges/", judges.judge_list, name="judge-list"),
    path(
        "systems/<slug:slug>/judges/<int:judge>/<int:criterion>/",
        judges.judge_card,
        name="judge-card",
    ),
    path(
        "systems/<slug:slug>/judges/<int:judge>/<int:criterion>/read",
        judges.judge_read,
        name="judge-read",
    ),
    path("systems/<slug:slug>/probes/", probes.probe_list, name="probe-list"),
    path("systems/<slug:slug>/probes/<int:number>/", probes.probe_batch, name="probe-batch"),
    path(
        "systems/<slug:slug>/probes/<int:number>/bundle", probes.probe_bundle, name="probe-bundle"
    ),
    path("systems/<slug:slug>/judge-runs/", judge_runs.judge_run_list, name="judge-run-list"),
    path("systems/<slug:slug>/judge-runs/new", judge_runs.judge_run_new, name="judge-run-new"),
    path(
        "systems/<slug:slug>/judge-runs/<int:number>/", judge_runs.judge_run_page, name="judge-run"
    ),
    path(
        "systems/<slug:slug>/judge-runs/<int:number>/work",
        judge_runs.judge_run_work,
        name="judge-run-work",
    ),
    path("systems/<slug:slug>/rubrics/", rubrics.rubric_list, name="rubric-list"),
    path("systems/<slug:slug>/rubrics/new", rubrics.rubric_new, name="rubric-new"),
    path("systems/<slug:slug>/rubrics/<int:rubric>/", rubrics.rubric_page, name="rubric"),
    path(
        "systems/<slug:slug>/rubrics/<int:rubric>/version",
        rubrics.rubric_version,
        name="rubric-version",
    ),
    path(
        "systems/<slug:slug>/rubrics/requests/<int:asked>/close",
        rubrics.rubric_request_close,
        name="rubric-request-close",
    ),
    path("systems/<slug:slug>/vouching/", vouching.vouch_list, name="vouch-list"),
    path("systems/<slug:slug>/vouching/vouch", vouching.vouch_for, name="vouch-for"),
    path(
        "systems/<slug:slug>/disputes/<uuid:dispute>/decide",
        adjudicate.dispute_decide,
        name="dispute-decide",
    ),
    path("systems/<slug:slug>/probes/new", probes.probe_new, name="probe-new"),
    path("systems/<slug:slug>/releases/<uuid:release>/gate/", gates.gate_page, name="gate"),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/gate/refresh",
        gates.gate_refresh,
        name="gate-refresh",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/gate/report/",
        gates.gate_report,
        name="gate-report",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/gate.json", gates.gate_json, name="gate-json"
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/gate/checks/<uuid:tier>/<slug:kind>/",
        gates.gate_check,
        name="gate-check",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/gate/reevaluate",
        gate_acts.gate_reevaluate,
        name="gate-reevaluate",
    ),
    path(
        "systems/<slug:slug>/runs/<uuid:run>/leave-out/",
        gate_acts.run_leave_out,
        name="run-leave-out",
    ),
    path(
        "systems/<slug:slug>/runs/<uuid:run>/leave-out/confirm",
        gate_acts.run_confirm,
        name="run-confirm",
    ),
    path("systems/<slug:slug>/runs/<uuid:run>/take-in", gate_acts.run_take_in, name="run-take-in"),
    path("systems/<slug:slug>/releases/<uuid:release>/sign/", sign_offs.sign_page, name="sign"),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/signatures/",
        sign_offs.signature_list,
        name="signature-list",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/signatures/<uuid:sign_off>/",
        sign_offs.signature_page,
        name="signature",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/signatures/<uuid:sign_off>/attestation.json",
        sign_offs.attestation,
        name="attestation",
    ),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/signatures/<uuid:sign_off>/void",
        sign_offs.sign_off_void,
        name="sign-off-void",
    ),
    path("systems/<slug:slug>/alerts/", alerts.alert_list, name="alert-list"),
    path("systems/<slug:slug>/alerts/<uuid:alert>/seen", alerts.alert_seen, name="alert-seen"),
    path("systems/<slug:slug>/thresholds/", thresholds.tier_list, name="thresholds"),
    path("systems/<slug:slug>/thresholds/new/", thresholds.tier_new, name="tier-new"),
    path("systems/<slug:slug>/thresholds/plan/", sample_plan.sample_plan, name="sample-plan"),
    path("systems/<slug:slug>/thresholds/tasks/", tier_tasks.tier_tasks, name="tier-tasks"),
    path("systems/<slug:slug>/thresholds/tasks/move", tier_tasks.tier_assign, name="tier-assign"),
    path("systems/<slug:slug>/thresholds/<uuid:tier>/", thresholds.tier_page, name="tier"),
    path(
        "systems/<slug:slug>/thresholds/<uuid:tier>/edit/",
        threshold_edit.threshold_edit,
        name="threshold-edit",
    ),
    path(
        "systems/<slug:slug>/thresholds/<uuid:tier>/versions/<int:number>/",
        thresholds.threshold_version,
        name="threshold-version",
    ),
    path(
        "systems/<slug:slug>/thresholds/<uuid:tier>/retire",
        thresholds.tier_retire,
        name="tier-retire",
    ),
    path("systems/<slug:slug>/audit/", audit.audit_log, name="audit-log"),
    path("systems/<slug:slug>/audit/<int:seq>/", audit.audit_event, name="audit-event"),
    path("systems/<slug:slug>/audit.csv", audit.audit_csv, name="audit-csv"),
    path("systems/<slug:slug>/audit.json", audit.audit_json, name="audit-json"),
    path("systems/<slug:slug>/members/", members.member_list, name="members"),
    path("systems/<slug:slug>/members/invite", members.member_invite, name="member-invite"),
    path("systems/<slug:slug>/members/<uuid:person>/role", members.member_role, name="member-role"),
    path(
        "systems/<slug:slug>/members/<uuid:person>/remove",
        members.member_remove,
        name="member-remove",
    ),
    path(
        "systems/<slug:slug>/members/invitations/<uuid:invitation>/revoke",
        members.invitation_revoke,
        name="invitation-revoke",
    ),
    path("systems/<slug:slug>/keys/", api_keys.key_list, name="api-keys"),
    path("systems/<slug:slug>/keys/new", api_keys.key_new, name="api-key-new"),
    path("systems/<slug:slug>/keys/<uuid:key>/revoke", api_keys.key_revoke, name="api-key-revoke"),
    path("account/", account.account_page, name="account"),
    path("account/password", account.account_password, name="account-password"),
    path("account/devices/<uuid:device>/end", account.device_end, name="device-end"),
    path("account/devices/end-others", account.devices_end_others, name="devices-end-others"),
    path(
        "invitations/<uuid:invitation>/<str:secret>/",
        invitation.invitation_take,
        name="invitation-take",
    ),
    path("signing-keys/", signing_keys.signing_keys, name="signing-keys"),
]
