"""The addresses of the API that need verdicts."""

from django.urls import path

from evalsite.contracts_api import (
    ContractCheck,
    ContractDraft,
    ContractList,
    ContractPreviewDetail,
    ContractPropose,
)
from evalsite.gates_api import NamedReleaseGate, ReleaseGateDetail
from evalsite.sign_offs_api import SignOffAttestation
from reviews.api.cases import CaseList
from reviews.api.disputes import DisputeList
from reviews.api.figures import Export, FigureList, TrialDetail
from reviews.api.judges import JudgeDetail, JudgeList
from reviews.api.novelty import Novelty
from reviews.api.overview import Overview
from reviews.api.probes import ProbeBundle, ProbeList, ProbeResults
from reviews.api.tiers import TierList

urlpatterns = [
    path("figures", FigureList.as_view(), name="api-figures"),
    path("overview", Overview.as_view(), name="api-overview"),
    path("novelty", Novelty.as_view(), name="api-novelty"),
    path("trials/<uuid:trial_id>", TrialDetail.as_view(), name="api-trial"),
    path("cases", CaseList.as_view(), name="api-cases"),
    path("judges", JudgeList.as_view(), name="api-judges"),
    path("judges/<int:judge>/<int:criterion>", JudgeDetail.as_view(), name="api-judge"),
    path("disputes", DisputeList.as_view(), name="api-disputes"),
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
    path("probes", ProbeList.as_view(), name="api-probes"),
    path("probes/<int:number>", ProbeResults.as_view(), name="api-probe-results"),
    path("probes/<int:number>/bundle", ProbeBundle.as_view(), name="api-probe-bundle"),
    path(
        "systems/<slug:slug>/releases/<uuid:release>/gate",
        ReleaseGateDetail.as_view(),
        name="api-gate",
    ),
    path("systems/<slug:slug>/releases/gate", NamedReleaseGate.as_view(), name="api-gate-by-name"),
    path(
        "systems/<slug:slug>/sign-offs/<uuid:sign_off>/attestation",
        SignOffAttestation.as_view(),
        name="api-attestation",
    ),
    path("systems/<slug:slug>/tiers", TierList.as_view(), name="api-tiers"),
    path("export", Export.as_view(), name="api-export"),
]
