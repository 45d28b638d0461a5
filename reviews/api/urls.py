"""The addresses of the API that need verdicts."""

from django.urls import path

from evalsite.contracts_api import (
    ContractCheck,
    ContractDraft,
    ContractList,
    ContractPreviewDetail,
    ContractPropose,
)
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
    path("contracts", ContractList.as_view(), name="api-contracts"),
    path("contracts/check", ContractCheck.as_view(), name="api-contract-check"),
    path("contracts/previews", ContractDraft.as_view(), name="api-contract-draft"),
    path(
        "contracts/previews/<uuid:preview_id>",
        ContractPreviewDetail.as_view(),
        name="api-contract-preview",
    ),
    path(
        "contracts/previews/<uuid:preview_id>/propose",
        ContractPropose.as_view(),
        name="api-contract-propose",
    ),
    path("export", Export.as_view(), name="api-export"),
]
