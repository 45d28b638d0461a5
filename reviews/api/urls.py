"""The addresses of the API that need verdicts."""

from django.urls import path

from reviews.api.figures import Export, FigureList, TrialDetail

urlpatterns = [
    path("figures", FigureList.as_view(), name="api-figures"),
    path("trials/<uuid:trial_id>", TrialDetail.as_view(), name="api-trial"),
    path("export", Export.as_view(), name="api-export"),
]
