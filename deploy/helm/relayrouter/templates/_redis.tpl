{{/* Where Redis is, and where passwords and keys come from. Yes and no are "true" and "". */}}
{{- define "relayrouter.ownValkey" -}}
{{- if and .Values.valkey.enabled (not .Values.redis.url) (not .Values.redis.existingUrlSecret) }}true{{ end -}}
{{- end }}

{{- define "relayrouter.valkeySecret" -}}
{{- .Values.valkey.auth.existingSecret | default (printf "%s-valkey" (include "relayrouter.fullname" .)) -}}
{{- end }}

{{- define "relayrouter.devKey" -}}
{{- if and (eq .Values.auth.mode "jwt") (not .Values.auth.keys) (or .Values.auth.generateDevKey .Values.auth.existingDevSecret) }}true{{ end -}}
{{- end }}

{{- define "relayrouter.devSecret" -}}
{{- .Values.auth.existingDevSecret | default (printf "%s-dev-key" (include "relayrouter.fullname" .)) -}}
{{- end }}

{{/* Sources of the projected volume /etc/relayrouter/secrets. */}}
{{- define "relayrouter.secretSources" -}}
{{- if include "relayrouter.ownValkey" . }}
- secret:
    name: {{ include "relayrouter.valkeySecret" . }}
    items: [{key: redis-password, path: redis-password}]
{{- else if .Values.redis.existingPasswordSecret }}
- secret:
    name: {{ .Values.redis.existingPasswordSecret }}
    items: [{key: {{ .Values.redis.existingPasswordSecretKey | quote }}, path: redis-password}]
{{- end }}
{{- if .Values.redis.existingSentinelPasswordSecret }}
- secret:
    name: {{ .Values.redis.existingSentinelPasswordSecret }}
    items: [{key: {{ .Values.redis.existingSentinelPasswordSecretKey | quote }}, path: sentinel-password}]
{{- end }}
{{- if .Values.redis.tls.existingSecret }}
- secret:
    name: {{ .Values.redis.tls.existingSecret }}
    items:
      - {key: ca.crt, path: redis-tls/ca.crt}
      {{- if .Values.redis.tls.clientCertificate }}
      - {key: tls.crt, path: redis-tls/tls.crt}
      - {key: tls.key, path: redis-tls/tls.key}
      {{- end }}
{{- end }}
{{- if include "relayrouter.devKey" . }}
- secret:
    name: {{ include "relayrouter.devSecret" . }}
    items: [{key: dev-secret, path: dev-secret}]
{{- end }}
{{- range $index, $key := .Values.auth.keys }}
- secret:
    name: {{ $key.existingSecret }}
    items: [{key: {{ $key.key | quote }}, path: keys/{{ $index }}}]
{{- end }}
{{- range $index, $receiver := .Values.webhooks }}
- secret:
    name: {{ $receiver.existingSecret }}
    items: [{key: {{ $receiver.key | quote }}, path: webhooks/{{ $index }}}]
{{- end }}
{{- end }}
