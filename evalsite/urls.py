"""Every address of the site."""

from django.urls import include, path

from evalsite import accounts
from evalsite.access import public
from evalsite.api_docs import Schema, docs
from evalsite.errors import csp_report
from evalsite.health import health
from evalsite.web.contract_schema import contract_schema
from evalsite.web.verdict_words import verdict_words

urlpatterns = [
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("demo-sign-in/", accounts.demo_sign_in, name="demo-sign-in"),
    path("health", public(health), name="health"),
    path("csp-report", csp_report, name="csp-report"),
    path("schemas/contract.json", contract_schema, name="contract-schema"),
    path("verdict-words/", verdict_words, name="verdict-words"),
    path("", include("traces.web.urls")),
    path("", include("evalsite.web.urls")),
    path("api/v1/", include("traces.api.urls")),
    path("api/v1/", include("reviews.api.urls")),
    path("api/schema", Schema.as_view(), name="api-schema"),
    path("api/docs", docs, name="api-docs"),
]

handler400 = "evalsite.errors.bad_request"
handler500 = "evalsite.errors.server_error"
