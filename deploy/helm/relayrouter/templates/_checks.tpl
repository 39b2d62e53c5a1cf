{{/* What no schema can say: values that do not go together. Called by the Deployment, so nothing is rendered without it. */}}
{{- define "relayrouter.check" -}}
{{- $reserved := dict
  "server.host" "nothing: containers listen everywhere"
  "server.port" "service.port: the container's own port is 8080"
  "server.admin_host" "nothing: containers listen everywhere"
  "server.admin_port" "nothing: the admin port is 9090"
  "server.gateway_name" "nothing: it is the pod's name"
  "server.insecure_no_auth" "auth.mode"
  "drain.settle_seconds" "drain.settleSeconds"
  "drain.window_seconds" "drain.windowSeconds"
  "drain.margin_seconds" "drain.marginSeconds"
  "drain.deadline_seconds" "drain.windowSeconds: the deadline is computed"
  "auth.mode" "auth.mode" "auth.keys" "auth.keys" "auth.dev_secret_file" "auth.existingDevSecret"
  "redis.url" "redis.url" "redis.password_file" "redis.existingPasswordSecret"
  "redis.sentinel_password" "redis.existingSentinelPasswordSecret"
  "redis.sentinel_password_file" "redis.existingSentinelPasswordSecret"
  "redis.tls_ca_file" "redis.tls.existingSecret" "redis.tls_certificate_file" "redis.tls.clientCertificate"
  "redis.tls_key_file" "redis.tls.clientCertificate" "redis.tls_server_name" "redis.tls.serverName"
  "tls.certificate_file" "tls.existingSecret" "tls.key_file" "tls.existingSecret"
  "tls.admin" "tls.admin" "tls.minimum_version" "tls.minimumVersion"
  "webhooks.receivers" "webhooks"
  "routing.file" "routeTable"
  "cluster.kubernetes" "kubernetes.enabled" "cluster.pod_deletion_cost" "kubernetes.podDeletionCost"
  "cluster.service" "nothing: it is the chart's Service" "cluster.namespace" "nothing: it is the pod's"
  "cluster.pod_name" "nothing: it is the pod's" "cluster.pod_uid" "nothing: it is the pod's"
  "cluster.kubeconfig" "nothing: it is the pod's service account" -}}
{{- range $topic, $settings := .Values.config -}}
{{- if kindIs "map" $settings -}}
{{- range $name, $_ := $settings -}}
{{- $key := printf "%s.%s" $topic $name -}}
{{- if hasKey $reserved $key -}}
{{- fail (printf "config.%s is set by the chart; use the value %s" $key (get $reserved $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- $key := .name | lower | trimPrefix "rr_" | replace "__" "." -}}
{{- if and (hasPrefix "RR_" .name) (hasKey $reserved $key) -}}
{{- fail (printf "extraEnv: %s is set by the chart; use the value %s" .name (get $reserved $key)) -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.valkey.enabled) (not .Values.redis.url) (not .Values.redis.existingUrlSecret) -}}
{{- fail "no Redis: set redis.url or redis.existingUrlSecret, or valkey.enabled=true for a small one of the chart's own" -}}
{{- end -}}
{{- if and .Values.redis.url .Values.redis.existingUrlSecret -}}
{{- fail "redis.url and redis.existingUrlSecret are both set: keep one" -}}
{{- end -}}
{{- if regexMatch "^[a-z+]+://([^/@]*:[^@]+@|.*[?&]([a-z_]+_)?password=)" (.Values.redis.url | default "") -}}
{{- fail "redis.url holds a password, which would be readable in a ConfigMap: put it into a Secret (redis.existingPasswordSecret), or the whole URL (redis.existingUrlSecret)" -}}
{{- end -}}
{{- if and .Values.redis.tls.existingSecret .Values.redis.url (not (hasPrefix "rediss" .Values.redis.url)) -}}
{{- fail (printf "redis.tls.existingSecret has no effect on %s://; write rediss instead of redis in redis.url" (regexFind "^[a-z+]+" .Values.redis.url)) -}}
{{- end -}}
{{- if and .Values.redis.tls.clientCertificate (not .Values.redis.tls.existingSecret) -}}
{{- fail "redis.tls.clientCertificate needs redis.tls.existingSecret with tls.crt and tls.key" -}}
{{- end -}}
{{- if and (include "relayrouter.ownValkey" .) (or .Values.redis.existingPasswordSecret .Values.redis.tls.existingSecret) -}}
{{- fail "redis.existingPasswordSecret and redis.tls are about a Redis of yours: set redis.url. The password of the chart's own Valkey is valkey.auth.existingSecret" -}}
{{- end -}}
{{- $kids := list -}}
{{- range .Values.auth.keys -}}
{{- if has .kid $kids -}}
{{- fail (printf "auth.keys: two have the kid %s, and no gateway would start" .kid) -}}
{{- end -}}
{{- $kids = append $kids .kid -}}
{{- end -}}
{{- if and (eq .Values.auth.mode "jwt") (not .Values.auth.keys) (not (include "relayrouter.devKey" .)) -}}
{{- fail "nobody could come in: auth.mode is jwt and there is no key. Set auth.keys, or auth.generateDevKey=true for a first try" -}}
{{- end -}}
{{- if and (eq .Values.auth.mode "none") .Values.auth.keys -}}
{{- fail "auth.keys are set, and auth.mode `none` lets everybody in without: set auth.mode=jwt, or leave the keys out" -}}
{{- end -}}
{{- if hasKey (.Values.podAnnotations | default dict) "checksum/config" -}}
{{- fail "podAnnotations: checksum/config is the chart's own; name yours otherwise" -}}
{{- end -}}
{{- if and .Values.routeTable.data .Values.routeTable.existingConfigMap -}}
{{- fail "routeTable.data and routeTable.existingConfigMap are both set: keep one" -}}
{{- end -}}
{{- if and (eq .Values.memoryWatermark "limit") (not (dig "limits" "memory" "" .Values.resources)) -}}
{{- fail "memoryWatermark is `limit`, and resources.limits.memory is not set" -}}
{{- end -}}
{{- if eq (toString .Values.update.maxSurge) "0" -}}
{{- if eq (toString .Values.update.maxUnavailable) "0" -}}
{{- fail "update.maxSurge and update.maxUnavailable are both 0: no pod could ever be replaced" -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) .Values.rbac.create .Values.kubernetes.enabled (not .Values.serviceAccount.name) -}}
{{- fail "rbac.create would give rights to the namespace's account `default`: name yours in serviceAccount.name" -}}
{{- end -}}
{{- if and (eq .Values.service.type "ClusterIP") (or .Values.service.nodePort .Values.service.externalTrafficPolicy .Values.service.loadBalancerSourceRanges) -}}
{{- fail "service.nodePort, externalTrafficPolicy and loadBalancerSourceRanges need service.type NodePort or LoadBalancer" -}}
{{- end -}}
{{- include "relayrouter.checkScaling" . -}}
{{- include "relayrouter.checkTls" . -}}
{{- if and .Values.metrics.podMonitor.enabled .Values.metrics.serviceMonitor.enabled -}}
{{- fail "metrics.podMonitor and metrics.serviceMonitor would scrape every pod twice: enable one" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.adminService.enabled) -}}
{{- fail "metrics.serviceMonitor finds its pods through adminService: enable it" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.adminFrom) .Values.ingress.enabled (has .Values.ingress.preset (list "aws" "gcp")) -}}
{{- fail (printf "ingress.preset %s lets the balancer ask for readiness on the admin port, and networkPolicy lets only monitoring in there: put the balancer's networks and Prometheus into networkPolicy.adminFrom" .Values.ingress.preset) -}}
{{- end -}}
{{- if and .Values.httpRoute.envoyGateway.enabled (not .Values.httpRoute.enabled) -}}
{{- fail "httpRoute.envoyGateway is about the chart's HTTPRoute: set httpRoute.enabled too" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs, for example [{name: my-gateway}]" -}}
{{- end -}}
{{- end }}

{{/* `redis:` with nothing below is null to YAML, and Helm then drops the defaults as well. Called by the template that Helm renders
first, the deepest, before another trips over it. `tls` is not in the list: it may be absent, see _tls.tpl. */}}
{{- define "relayrouter.checkPresent" -}}
{{- range list
  "global" "image" "update" "drain" "drain.preStopSeconds" "drain.settleSeconds" "drain.windowSeconds" "drain.marginSeconds"
  "auth" "redis" "redis.tls" "valkey" "valkey.image" "valkey.auth" "valkey.persistence" "probes" "probes.startup" "probes.readiness"
  "probes.liveness" "kubernetes" "serviceAccount" "rbac" "service" "service.port" "service.headless" "adminService" "podDisruptionBudget"
  "autoscaling" "autoscaling.minReplicas" "autoscaling.maxReplicas" "autoscaling.scaleUp" "autoscaling.scaleDown" "keda" "routeTable"
  "networkPolicy" "httpRoute" "httpRoute.envoyGateway" "ingress" "metrics" "metrics.podMonitor" "metrics.serviceMonitor"
  "metrics.prometheusRule" "metrics.dashboards" "tests" -}}
{{- $found := $.Values -}}
{{- range splitList "." . -}}
{{- $found = get $found . -}}
{{- end -}}
{{- if or (kindIs "invalid" $found) (kindIs "string" $found) -}}
{{- fail (printf "%s is null or has nothing below it, which takes its defaults away: leave the key out, or give it a value" .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "relayrouter.checkTls" -}}
{{- if include "relayrouter.tls" . -}}
{{- if and (.Values.tls | default dict).caConfigMap (not (.Values.tls | default dict).serverName) -}}
{{- fail "tls.caConfigMap has no effect without tls.serverName: whoever checks a certificate looks for a name in it" -}}
{{- end -}}
{{- if and (not (.Values.tls | default dict).serverName) .Values.httpRoute.enabled -}}
{{- fail "tls.existingSecret makes the gateways speak TLS, and a BackendTLSPolicy for the httpRoute needs tls.serverName, a name in the certificate. Or end TLS at the Gateway alone: leave tls.existingSecret empty" -}}
{{- end -}}
{{- if and (not (.Values.tls | default dict).serverName) .Values.ingress.enabled (eq .Values.ingress.preset "traefik") -}}
{{- fail "tls.existingSecret makes the gateways speak TLS, and Traefik checks their certificate: set tls.serverName, a name in it. Or end TLS at Traefik alone: leave tls.existingSecret empty" -}}
{{- end -}}
{{- else if or (.Values.tls | default dict).admin (.Values.tls | default dict).serverName (.Values.tls | default dict).caConfigMap -}}
{{- fail "tls.admin, tls.serverName and tls.caConfigMap are about a certificate: name its Secret in tls.existingSecret" -}}
{{- end -}}
{{- end }}

{{- define "relayrouter.checkScaling" -}}
{{- $scaled := .Values.autoscaling -}}
{{- if and .Values.autoscaling.enabled .Values.keda.enabled -}}
{{- fail "autoscaling and keda are both enabled, and would work against each other: keep one" -}}
{{- end -}}
{{- if or .Values.autoscaling.enabled .Values.keda.enabled -}}
{{- if gt ($scaled.minReplicas | int) ($scaled.maxReplicas | int) -}}
{{- fail (printf "autoscaling.minReplicas %d is above maxReplicas %d" ($scaled.minReplicas | int) ($scaled.maxReplicas | int)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- if and (not $scaled.targetCPUPercent) (not $scaled.targetConnections) (not $scaled.targetOpenRuns) -}}
{{- fail "autoscaling needs a target: targetCPUPercent, targetConnections or targetOpenRuns" -}}
{{- end -}}
{{- if and $scaled.targetCPUPercent (not (dig "requests" "cpu" "" .Values.resources)) -}}
{{- fail "autoscaling.targetCPUPercent is a share of resources.requests.cpu, which is not set" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.keda.enabled (not .Values.keda.prometheusAddress) -}}
{{- fail "keda needs keda.prometheusAddress, for example http://prometheus.monitoring:9090" -}}
{{- end -}}
{{- if .Values.podDisruptionBudget.enabled -}}
{{- include "relayrouter.checkBudget" . -}}
{{- end -}}
{{- end }}

{{/* A budget that never lets a pod go makes `kubectl drain` hang for ever. */}}
{{- define "relayrouter.checkBudget" -}}
{{- $least := .Values.podDisruptionBudget.minAvailable -}}
{{- $most := .Values.podDisruptionBudget.maxUnavailable -}}
{{- $pods := ternary .Values.autoscaling.minReplicas .Values.replicas (or .Values.autoscaling.enabled .Values.keda.enabled | default false) | int -}}
{{- if and (not (kindIs "invalid" $least)) (not (kindIs "invalid" $most)) -}}
{{- fail "podDisruptionBudget.minAvailable and maxUnavailable are both set: set the other one to null" -}}
{{- end -}}
{{- if and (kindIs "invalid" $least) (kindIs "invalid" $most) -}}
{{- fail "podDisruptionBudget needs maxUnavailable or minAvailable; or set podDisruptionBudget.enabled=false" -}}
{{- end -}}
{{- if or (eq (toString $most) "0") (eq (toString $most) "0%") (eq (toString $least) "100%") -}}
{{- fail "podDisruptionBudget lets no pod go: no node could be drained. Use maxUnavailable: 1" -}}
{{- end -}}
{{- /* Kubernetes rounds a share up: 51% of 2 pods are 2. */ -}}
{{- $kept := $least | int -}}
{{- if kindIs "string" $least -}}
{{- $kept = div (add (mul (trimSuffix "%" $least | int) $pods) 99) 100 | int -}}
{{- end -}}
{{- if and (not (kindIs "invalid" $least)) (gt $pods 0) (ge $kept $pods) -}}
{{- fail (printf "podDisruptionBudget.minAvailable %v of %d pods lets no pod go: no node could be drained. Use maxUnavailable: 1" $least $pods) -}}
{{- end -}}
{{- end }}
