"""The addresses of the pages that join traces and reviews."""

from django.urls import path

from evalsite.web import (
    accepted,
    exports,
    flags,
    path_accept,
    release,
    task,
    task_diagnostics,
    task_tree,
    tasks,
    trial,
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
]
