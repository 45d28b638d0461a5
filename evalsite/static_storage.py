"""Static files with their digest in the name, so that browsers may keep them for ever."""

from typing import Any

from django.contrib.staticfiles.storage import HashedFilesMixin, ManifestStaticFilesStorage
from whitenoise.storage import CompressedManifestStaticFilesStorage

_STYLE_PATTERNS: Any = HashedFilesMixin.patterns[0]
_MODULE_PATTERNS: Any = HashedFilesMixin._js_module_import_aggregation_patterns  # type: ignore[attr-defined]  # noqa: SLF001
# Imports are followed in our own modules only: libraries name files that they do not ship.
_PATTERNS: Any = (_STYLE_PATTERNS, ("js/*.js", _MODULE_PATTERNS[1]))


class HashedStorage(ManifestStaticFilesStorage):
    patterns = _PATTERNS


class CompressedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    patterns = _PATTERNS
