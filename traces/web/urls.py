"""The addresses of the pages that traces answer."""

from django.urls import path

from traces.web import (
    compare,
    rule_editing,
    rule_previews,
    rule_versions,
    rules,
    runs,
    systems,
    trials,
    uploads,
)

urlpatterns = [
    path("", systems.system_list, name="system-list"),
    path("systems/new/", systems.system_new, name="system-new"),
    path(
        "systems/<slug:slug>/tasks/<uuid:task>/compare/",
        compare.task_compare,
        name="task-compare",
    ),
    path("systems/<slug:slug>/trials/", trials.trial_list, name="trial-list"),
    path("systems/<slug:slug>/runs/", runs.run_list, name="run-list"),
    path("systems/<slug:slug>/runs/<uuid:run>/", runs.run_detail, name="run-detail"),
    path("systems/<slug:slug>/rules/", rules.rules_page, name="rules"),
    path("systems/<slug:slug>/rules/edit/", rule_editing.rule_form, name="rule-form"),
    path(
        "systems/<slug:slug>/rules/previews/<uuid:preview>/",
        rule_previews.rules_preview,
        name="rules-preview",
    ),
    path(
        "systems/<slug:slug>/rules/previews/<uuid:preview>/propose",
        rule_previews.rules_propose,
        name="rules-propose",
    ),
    path(
        "systems/<slug:slug>/rules/versions/<int:number>/",
        rule_versions.rules_version,
        name="rules-version",
    ),
    path(
        "systems/<slug:slug>/rules/versions/<int:number>/decide",
        rule_versions.rules_decide,
        name="rules-decide",
    ),
    path(
        "systems/<slug:slug>/rules/versions/<int:number>/withdraw",
        rule_versions.rules_withdraw,
        name="rules-withdraw",
    ),
    path(
        "systems/<slug:slug>/rules/versions/<int:number>/work",
        rule_versions.rules_work,
        name="rules-work",
    ),
    path("systems/<slug:slug>/rules/suggest", rules.rules_suggest, name="rules-suggest"),
    path("systems/<slug:slug>/uploads/", uploads.upload_list, name="upload-list"),
    path("systems/<slug:slug>/uploads/new/", uploads.upload_new, name="upload-new"),
    path("systems/<slug:slug>/uploads/<uuid:upload>/", uploads.upload_detail, name="upload-detail"),
    path("systems/<slug:slug>/uploads/<uuid:upload>/raw", uploads.upload_raw, name="upload-raw"),
    path(
        "systems/<slug:slug>/uploads/<uuid:upload>/lines/<int:line>/raw",
        uploads.upload_line_raw,
        name="upload-line-raw",
    ),
]
