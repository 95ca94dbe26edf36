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

{{- define "sluice.redisSecret" -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis" (include "sluice.prefix" .)) -}}
{{- end -}}

{{- define "sluice.rootKeySecret" -}}
{{- .Values.rootKey.existingSecret | default (printf "%s-root-key" (include "sluice.prefix" .)) -}}
{{- end -}}

{{- define "sluice.smtpSecret" -}}
{{- .Values.smtp.existingSecret | default (printf "%s-smtp" (include "sluice.prefix" .)) -}}
{{- end -}}

{{/* The hash of the trusted certificates. It is empty if Helm can't access the cluster. In this case, pods do not restart. */}}
{{- define "sluice.trustChecksum" -}}
{{- $found := lookup "v1" "ConfigMap" .Release.Namespace .Values.trust.configMap -}}
{{- dig "data" "ca.crt" "" $found | sha256sum -}}
{{- end -}}

{{/* The NetworkPolicy rules for public addresses and allowed networks, except for refused networks. */}}
{{- define "sluice.endpointRules" -}}
{{- $v4 := dict "cidr" "0.0.0.0/0" "except" .Values.networkPolicy.clusterNetworks -}}
{{- $v6 := dict "cidr" "::/0" "except" .Values.networkPolicy.clusterNetworksV6 -}}
{{- $blocks := list $v4 $v6 -}}
{{- range .Values.allowedNetworks }}{{ $blocks = append $blocks (dict "cidr" .) }}{{ end -}}
{{- $refused := dict -}}
{{- range .Values.refusedNetworks }}{{ $_ := set $refused . (include "sluice.bits" .) }}{{ end -}}
{{- range $block := $blocks }}
{{- $bits := include "sluice.bits" $block.cidr }}
{{- $isRefused := false }}
{{- range $network, $of := $refused }}
{{- if hasPrefix $of $bits }}
{{- $isRefused = true }}
{{- else if hasPrefix $bits $of }}
{{- /* Kubernetes only accepts exceptions that are part of the network. */}}
{{- $_ := set $block "except" (append ($block.except | default list) $network) }}
{{- end }}
{{- end }}
{{- if not $isRefused }}
- to: [{ipBlock: {{ toJson $block }}}]
{{- end }}
{{- end }}
{{- end -}}

{{/* The prefix bits of a network in CIDR notation, e.g. "v4:00001010" for 10.0.0.0/8. */}}
{{- define "sluice.bits" -}}
{{- $address := first (splitList "/" .) | lower -}}
{{- $bits := "" -}}
{{- if contains ":" $address -}}
{{- $halves := splitList "::" $address -}}
{{- $left := include "sluice.hex" (first $halves) -}}
{{- $right := include "sluice.hex" (rest $halves | join "") -}}
{{- $zeros := max 0 (sub 32 (add (len $left) (len $right))) | int -}}
{{- range splitList "" (print $left (repeat $zeros "0") $right) -}}
{{- $bits = print $bits (printf "%04b" (index (dict "a" 10 "b" 11 "c" 12 "d" 13 "e" 14 "f" 15) . | default (atoi .))) -}}
{{- end -}}
{{- else -}}
{{- range splitList "." $address }}{{ $bits = printf "%s%08b" $bits (atoi .) }}{{ end -}}
{{- end -}}
{{- ternary "v6:" "v4:" (contains ":" $address) -}}
{{- trunc (last (splitList "/" .) | int) $bits -}}
{{- end -}}

{{/* Expands an IPv6 address to four digits for each group. The last group can be an IPv4 address. */}}
{{- define "sluice.hex" -}}
{{- range without (splitList ":" .) "" -}}
{{- if contains "." . -}}
{{- range splitList "." . }}{{ printf "%02x" (atoi .) }}{{ end -}}
{{- else -}}
{{- trunc -4 (print "000" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels for templates that are not generated. */}}
{{- define "sluice.labels" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
