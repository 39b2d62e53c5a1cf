{{/* Names, labels, images. */}}
{{- define "relayrouter.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* At most 50 characters: the longest suffix of an object's name must fit into 63. */}}
{{- define "relayrouter.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What selects the gateways' pods; never changes in the life of a release. */}}
{{- define "relayrouter.selector" -}}
app.kubernetes.io/name: {{ include "relayrouter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
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
{{- merge $own (deepCopy .root.Values.commonLabels) | toYaml -}}
{{- end }}

{{/* (dict "root" $ "image" .Values.image "tag" "what an empty tag means") */}}
{{- define "relayrouter.image" -}}
{{- $registry := .root.Values.global.imageRegistry | default .image.registry -}}
{{- $name := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (.image.tag | default .tag) -}}
{{- end -}}
{{- end }}

{{- define "relayrouter.pullSecrets" -}}
{{- with concat .Values.global.imagePullSecrets .Values.imagePullSecrets | uniq }}
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
