"""The addresses of the pages that join traces and reviews."""

from django.urls import path

from evalsite.web import exports, task, tasks, trial

urlpatterns = [
    path("systems/<slug:slug>/", tasks.system_start, name="system-start"),
    path("systems/<slug:slug>/tasks/", tasks.task_list, name="task-list"),
    path("systems/<slug:slug>/tasks/<uuid:task>/", task.task_page, name="task-detail"),
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
