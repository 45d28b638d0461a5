"""The addresses of the API that traces answer."""

from django.urls import path

from traces.api.additions import AdditionCreate
from traces.api.paths import PathList
from traces.api.runs import RunCreate, RunDetail
from traces.api.uploads import UploadCreate, UploadDetail, UploadLines, UploadRaw

urlpatterns = [
    path("uploads", UploadCreate.as_view(), name="api-uploads"),
    path("uploads/<uuid:upload_id>", UploadDetail.as_view(), name="api-upload"),
    path("uploads/<uuid:upload_id>/lines", UploadLines.as_view(), name="api-upload-lines"),
    path("uploads/<uuid:upload_id>/raw", UploadRaw.as_view(), name="api-upload-raw"),
    path("runs", RunCreate.as_view(), name="api-runs"),
    path("runs/<uuid:run_id>", RunDetail.as_view(), name="api-run"),
    path("trials/<uuid:trial_id>/evidence", AdditionCreate.as_view(), name="api-evidence"),
    path("paths", PathList.as_view(), name="api-paths"),
]
