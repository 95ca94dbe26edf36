{{/* The prefix for all names, which is the release name, or the release name and the chart name. */}}
{{- define "sluice.prefix" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 32 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 32 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The component that runs a role. Takes the root context and the role. */}}
{{- define "sluice.component" -}}
{{- if eq (index . 0).Values.mode "all" -}}all{{- else -}}{{- index . 1 -}}{{- end -}}
{{- end -}}

{{/* The service account of a role. Takes the root context and the role. */}}
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

{{/* Converts a value to a string. Numbers never use scientific notation. */}}
{{- define "sluice.text" -}}
{{- if kindIs "string" . -}}{{- quote . -}}{{- else -}}{{- toJson . | quote -}}{{- end -}}
{{- end -}}

{{/* Converts an object to name=value pairs separated by commas. */}}
{{- define "sluice.pairs" -}}
{{- $pairs := list -}}
{{- range $name, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $name (toJson $value | trimAll "\"")) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/* The Secrets of the chart do not have the names used in the documentation, because Helm deletes a Secret that replaces its own. */}}
{{- define "sluice.redisSecret" -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis-url" (include "sluice.prefix" .)) -}}
{{- end -}}

{{- define "sluice.rootKeySecret" -}}
{{- .Values.rootKey.existingSecret | default (printf "%s-root-key" (include "sluice.prefix" .)) -}}
{{- end -}}

{{- define "sluice.smtpSecret" -}}
{{- .Values.smtp.existingSecret | default (printf "%s-smtp%s" (include "sluice.prefix" .) (ternary "" "-url" (empty .Values.smtp.url))) -}}
{{- end -}}

{{/* The hash of the trusted certificates. It is empty if Helm can't access the cluster. In this case, pods do not restart. */}}
{{- define "sluice.trustChecksum" -}}
{{- $found := lookup "v1" "ConfigMap" .Release.Namespace .Values.trust.configMap -}}
{{- dig "data" "ca.crt" "" $found | sha256sum -}}
{{- end -}}

{{/* The labels for templates that are not generated. */}}
{{- define "sluice.labels" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
