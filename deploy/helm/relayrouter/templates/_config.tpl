{{/* The gateway's settings: what the chart decides, under what `config` says. */}}
{{- define "relayrouter.deadlineSeconds" -}}
{{- add .Values.drain.settleSeconds .Values.drain.windowSeconds .Values.drain.marginSeconds 4 -}}
{{- end }}

{{/* The kubelet kills at its end: preStop, the whole drain, and some seconds for the container to end. */}}
{{- define "relayrouter.graceSeconds" -}}
{{- $needed := add .Values.drain.preStopSeconds (include "relayrouter.deadlineSeconds" . | int) 3 | int -}}
{{- $given := .Values.terminationGracePeriodSeconds -}}
{{- if kindIs "invalid" $given -}}
{{- $needed -}}
{{- else -}}
{{- if lt ($given | int) $needed -}}
{{- fail (printf "terminationGracePeriodSeconds %d is too short: a drain takes up to %d s (drain.preStopSeconds %d + settleSeconds %d + windowSeconds %d + marginSeconds %d + 7). Leave it empty, or make drain.windowSeconds smaller." ($given | int) $needed (.Values.drain.preStopSeconds | int) (.Values.drain.settleSeconds | int) (.Values.drain.windowSeconds | int) (.Values.drain.marginSeconds | int)) -}}
{{- end -}}
{{- $given -}}
{{- end -}}
{{- end }}

{{- define "relayrouter.config" -}}
{{- $secrets := "/etc/relayrouter/secrets" -}}
{{- $drain := dict "settle_seconds" .Values.drain.settleSeconds "window_seconds" .Values.drain.windowSeconds "margin_seconds" .Values.drain.marginSeconds "deadline_seconds" (include "relayrouter.deadlineSeconds" . | int) -}}
{{- $server := dict "host" "0.0.0.0" "port" 8080 "admin_host" "0.0.0.0" "admin_port" 9090 -}}
{{- /* Google's balancers keep idle connections for 600 s, and must be the ones that close. */ -}}
{{- if and .Values.ingress.enabled (eq .Values.ingress.preset "gcp") -}}
{{- $_ := set $server "keepalive_seconds" 620 -}}
{{- end -}}
{{- $auth := dict "mode" .Values.auth.mode -}}
{{- if eq .Values.auth.mode "none" -}}
{{- $_ := set $server "insecure_no_auth" true -}}
{{- else if include "relayrouter.devKey" . -}}
{{- $_ := set $auth "dev_secret_file" (printf "%s/dev-secret" $secrets) -}}
{{- else -}}
{{- $keys := list -}}
{{- range $index, $key := .Values.auth.keys -}}
{{- $keys = append $keys (dict "kid" $key.kid "algorithm" $key.algorithm "file" (printf "%s/keys/%d" $secrets $index)) -}}
{{- end -}}
{{- $_ := set $auth "keys" $keys -}}
{{- end -}}
{{- $redis := dict -}}
{{- if include "relayrouter.ownValkey" . -}}
{{- $_ := set $redis "url" (printf "redis://%s-valkey:6379/0" (include "relayrouter.fullname" .)) -}}
{{- $_ := set $redis "password_file" (printf "%s/redis-password" $secrets) -}}
{{- else -}}
{{- if not .Values.redis.existingUrlSecret -}}
{{- $_ := set $redis "url" .Values.redis.url -}}
{{- end -}}
{{- if .Values.redis.existingPasswordSecret -}}
{{- $_ := set $redis "password_file" (printf "%s/redis-password" $secrets) -}}
{{- end -}}
{{- end -}}
{{- if .Values.redis.existingSentinelPasswordSecret -}}
{{- $_ := set $redis "sentinel_password_file" (printf "%s/sentinel-password" $secrets) -}}
{{- end -}}
{{- if .Values.redis.tls.existingSecret -}}
{{- $_ := set $redis "tls_ca_file" (printf "%s/redis-tls/ca.crt" $secrets) -}}
{{- if .Values.redis.tls.clientCertificate -}}
{{- $_ := set $redis "tls_certificate_file" (printf "%s/redis-tls/tls.crt" $secrets) -}}
{{- $_ := set $redis "tls_key_file" (printf "%s/redis-tls/tls.key" $secrets) -}}
{{- end -}}
{{- end -}}
{{- if .Values.redis.tls.serverName -}}
{{- $_ := set $redis "tls_server_name" .Values.redis.tls.serverName -}}
{{- end -}}
{{- $tls := dict -}}
{{- if include "relayrouter.tls" . -}}
{{- $tls = dict "certificate_file" "/etc/relayrouter/tls/tls.crt" "key_file" "/etc/relayrouter/tls/tls.key" "admin" ((.Values.tls | default dict).admin | default false) "minimum_version" ((.Values.tls | default dict).minimumVersion | default "1.2") -}}
{{- end -}}
{{- $config := dict "server" $server "drain" $drain "auth" $auth "redis" $redis -}}
{{- if $tls -}}
{{- $_ := set $config "tls" $tls -}}
{{- end -}}
{{- if include "relayrouter.routeMap" . -}}
{{- $_ := set $config "routing" (dict "file" "/etc/relayrouter/routes/routes.yaml") -}}
{{- end -}}
{{- $receivers := list -}}
{{- range $index, $receiver := .Values.webhooks -}}
{{- $file := dict "secret_file" (printf "%s/webhooks/%d" $secrets $index) -}}
{{- $receivers = append $receivers (merge $file (omit $receiver "existingSecret" "key")) -}}
{{- end -}}
{{- if $receivers -}}
{{- $_ := set $config "webhooks" (dict "receivers" $receivers) -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy (.Values.config | default dict)) | toYaml -}}
{{- end }}

{{/* The ConfigMap with the route table; empty: the shipped table is in force. */}}
{{- define "relayrouter.routeMap" -}}
{{- if .Values.routeTable.existingConfigMap -}}
{{- .Values.routeTable.existingConfigMap -}}
{{- else if .Values.routeTable.data -}}
{{- include "relayrouter.fullname" . }}-routes
{{- end -}}
{{- end }}
