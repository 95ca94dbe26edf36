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

{{/*
A size in bytes, as a number in a text. Takes a size in the units of Redis (800mb, where k is 1000 and kb is 1024) or of
Kubernetes (512Mi). It is empty if the unit is unknown.
*/}}
{{- define "sluice.bytes" -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" . -}}
{{- $unit := trimPrefix $number . -}}
{{- $units := dict "" 1 "b" 1 "k" 1e3 "kb" 1024 "m" 1e6 "mb" 1048576 "g" 1e9 "gb" 1073741824 -}}
{{- $units = merge $units (dict "Ki" 1024 "M" 1e6 "Mi" 1048576 "G" 1e9 "Gi" 1073741824 "T" 1e12 "Ti" 1099511627776) -}}
{{- if hasKey $units $unit }}{{ mulf (float64 $number) (get $units $unit | float64) }}{{ end -}}
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
