"""docs/openapi.yaml, written from tools/api/http.py and the table of errors."""

import json
import re
from typing import Any

import msgspec
import yaml

from gateway import __version__
from gateway.domain.wire.errors import ERROR_RULES
from tools.api.http import ENDPOINTS, Endpoint


def openapi() -> str:
    """The OpenAPI 3.1 document of the public port."""
    bodies = sorted(
        {endpoint.body for endpoint in ENDPOINTS if endpoint.body is not None}, key=lambda body: body.__name__
    )
    _, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = _operation(endpoint)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "RelayRouter",
            "version": __version__,
            "description": "What each error code means: protocol.md.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "responses": {"Error": _error()},
            "schemas": schemas,
        },
    }
    plain = json.loads(json.dumps(document))  # examples share parts, which YAML would write as references
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in endpoint.query.items()
    ]
    operation: dict[str, Any] = {"summary": endpoint.summary, "description": f"Scope `{endpoint.scope}`."}
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        schema = {"$ref": f"#/components/schemas/{endpoint.body.__name__}"}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    elif endpoint.method == "post" and endpoint.media_type == "text/event-stream":
        operation["requestBody"] = {"content": {"application/json": {"schema": {"type": "object"}}}}
    elif endpoint.path.endswith(("/stream", "/media/{stream}")):
        operation["requestBody"] = {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    answer = {"description": "Done", "content": {endpoint.media_type: {"example": endpoint.answer}}}
    operation["responses"] = {str(endpoint.status): answer, "default": {"$ref": "#/components/responses/Error"}}
    return operation


def _error() -> dict[str, Any]:
    fields = {
        "code": {"type": "string", "enum": [code.value for code in ERROR_RULES]},
        "message": {"type": "string"},
        "retryable": {"type": "boolean"},
        "details": {"type": "object"},
    }
    error = {"type": "object", "required": list(fields), "properties": fields}
    schema = {"type": "object", "required": ["error"], "properties": {"error": error}}
    return {"description": "Refused", "content": {"application/json": {"schema": schema}}}


__all__ = ["openapi"]
