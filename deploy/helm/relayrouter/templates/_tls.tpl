{{/* TLS on the gateway's own listeners. Yes and no are "true" and "". `| default dict`: `helm upgrade --reuse-values` from a
release that had no `tls` brings none. */}}
{{- define "relayrouter.tls" -}}
{{- if (.Values.tls | default dict).existingSecret }}true{{ end -}}
{{- end }}

{{- define "relayrouter.adminTls" -}}
{{- if and (.Values.tls | default dict).existingSecret (.Values.tls | default dict).admin }}true{{ end -}}
{{- end }}

{{- define "relayrouter.adminScheme" -}}
{{- ternary "HTTPS" "HTTP" (eq (include "relayrouter.adminTls" .) "true") -}}
{{- end }}

{{/* Of an endpoint in a monitor. Pods are scraped by their address, which is in no certificate. */}}
{{- define "relayrouter.scrapeTls" -}}
{{- if include "relayrouter.adminTls" . -}}
scheme: https
tlsConfig:
  {{- if (.Values.tls | default dict).serverName }}
  serverName: {{ (.Values.tls | default dict).serverName | quote }}
  {{- with (.Values.tls | default dict).caConfigMap }}
  ca: {configMap: {name: {{ . }}, key: ca.crt}}
  {{- end }}
  {{- else }}
  insecureSkipVerify: true
  {{- end }}
{{- end -}}
{{- end }}

{{/* What the proxies in front need to know of the Service. */}}
{{- define "relayrouter.serviceAnnotations" -}}
{{- $own := dict -}}
{{- if .Values.ingress.enabled -}}
{{- if eq .Values.ingress.preset "gcp" -}}
{{- $own = dict "cloud.google.com/neg" `{"ingress": true}` "cloud.google.com/backend-config" (printf `{"default": %q}` (include "relayrouter.fullname" .)) -}}
{{- if include "relayrouter.tls" . -}}
{{- $_ := set $own "cloud.google.com/app-protocols" `{"http": "HTTPS"}` -}}
{{- end -}}
{{- else if and (eq .Values.ingress.preset "traefik") (include "relayrouter.tls" .) -}}
{{- $_ := set $own "traefik.ingress.kubernetes.io/service.serversscheme" "https" -}}
{{- $_ := set $own "traefik.ingress.kubernetes.io/service.serverstransport" (printf "%s-%s@kubernetescrd" .Release.Namespace (include "relayrouter.fullname" .)) -}}
{{- end -}}
{{- end -}}
{{- with merge (deepCopy (.Values.service.annotations | default dict)) $own -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}
