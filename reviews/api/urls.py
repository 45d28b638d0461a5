"""The addresses of the API that need verdicts."""

from django.urls import path

from reviews.api.cases import CaseList
from reviews.api.figures import Export, FigureList, TrialDetail
from reviews.api.novelty import Novelty
from reviews.api.overview import Overview

urlpatterns = [
    path("figures", FigureList.as_view(), name="api-figures"),
    path("overview", Overview.as_view(), name="api-overview"),
    path("novelty", Novelty.as_view(), name="api-novelty"),
    path("trials/<uuid:trial_id>", TrialDetail.as_view(), name="api-trial"),
    path("cases", CaseList.as_view(), name="api-cases"),
    path("export", Export.as_view(), name="api-export"),
]
