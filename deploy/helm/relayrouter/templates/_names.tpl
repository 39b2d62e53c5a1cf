{{/* Names, labels, images. */}}
{{- define "relayrouter.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimAll "-" -}}
{{- end }}

{{/* At most 50 characters: the longest suffix of an object's name must fit into 63. A release may have dots in its name, a Service not. */}}
{{- define "relayrouter.fullname" -}}
{{- $full := .Values.fullnameOverride -}}
{{- if not $full -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- end -}}
{{- $full | replace "." "-" | trunc 50 | trimAll "-" -}}
{{- end }}

{{/* What selects the gateways' pods; never changes in the life of a release. */}}
{{- define "relayrouter.selector" -}}
app.kubernetes.io/name: {{ include "relayrouter.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: gateway
{{- end }}

{{/* (dict "root" $ "component" "...") */}}
{{- define "relayrouter.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" (include "relayrouter.name" .root)
  "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/component" .component
  "app.kubernetes.io/part-of" "relayrouter"
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63) -}}
{{- merge $own (deepCopy (.root.Values.commonLabels | default dict)) | toYaml -}}
{{- end }}

{{/* (dict "root" $ "image" .Values.image "tag" "what an empty tag means") */}}
{{- define "relayrouter.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry | default "" -}}
{{- $name := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.image.tag | default .tag) -}}
{{- end -}}
{{- end }}

{{- define "relayrouter.pullSecrets" -}}
{{- with concat (.Values.global.imagePullSecrets | default list) (.Values.imagePullSecrets | default list) | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "map" . }}{{ .name }}{{ else }}{{ . }}{{ end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "relayrouter.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "relayrouter.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}
