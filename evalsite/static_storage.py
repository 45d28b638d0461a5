"""Static files with their digest in the name, so that browsers may keep them for ever."""

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStorage(ManifestStaticFilesStorage):
    support_js_module_import_aggregation = True
    # A library's source map that is not shipped must not stop the collection.
    manifest_strict = False


class CompressedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    support_js_module_import_aggregation = True
    manifest_strict = False
