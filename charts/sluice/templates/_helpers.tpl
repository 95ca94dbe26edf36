{{/* Start of all names: the release, or the release and the chart. */}}
{{- define "sluice.prefix" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 32 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 32 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Component whose pods run a role. Takes the root and the role. */}}
{{- define "sluice.component" -}}
{{- if eq (index . 0).Values.mode "all" -}}all{{- else -}}{{- index . 1 -}}{{- end -}}
{{- end -}}

{{/* Service account of a role. Takes the root and the role. */}}
{{- define "sluice.account" -}}
{{- printf "%s-%s" (include "sluice.prefix" (index . 0)) (include "sluice.component" .) -}}
{{- end -}}

{{- define "sluice.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s/%s@%s" .registry .repository .digest -}}
{{- else -}}
{{- printf "%s/%s:%s" .registry .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "sluice.redisImage" -}}
{{- with .Values.image -}}
{{- $.Values.redis.embedded.image | default (printf "%s/%s-redis:%s" .registry .repository (.tag | default $.Chart.AppVersion)) -}}
{{- end -}}
{{- end -}}

{{/* A value as a string. Numbers are written in full. */}}
{{- define "sluice.text" -}}
{{- if kindIs "string" . -}}{{- quote . -}}{{- else -}}{{- toJson . | quote -}}{{- end -}}
{{- end -}}

{{/* An object as name=value pairs, joined by commas. */}}
{{- define "sluice.pairs" -}}
{{- $pairs := list -}}
{{- range $name, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $name (toJson $value | trimAll "\"")) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{- define "sluice.redisSecret" -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis" (include "sluice.prefix" .)) -}}
{{- end -}}

{{- define "sluice.rootKeySecret" -}}
{{- .Values.rootKey.existingSecret | default (printf "%s-root-key" (include "sluice.prefix" .)) -}}
{{- end -}}

{{- define "sluice.smtpSecret" -}}
{{- .Values.smtp.existingSecret | default (printf "%s-smtp" (include "sluice.prefix" .)) -}}
{{- end -}}

{{/* Hash of the certificates that are trusted. Empty without a cluster, in which case pods do not restart. */}}
{{- define "sluice.trustChecksum" -}}
{{- $found := lookup "v1" "ConfigMap" .Release.Namespace .Values.trust.configMap -}}
{{- dig "data" "ca.crt" "" $found | sha256sum -}}
{{- end -}}

{{/* Labels of the templates that are written by hand. */}}
{{- define "sluice.labels" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
