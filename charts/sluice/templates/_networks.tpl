{{/*
The ports that a NetworkPolicy opens, as a JSON array: those in networkPolicy, and those in the URLs of the values. Takes the
root context and redis, https, smtp, or collector.
*/}}
{{- define "sluice.ports" -}}
{{- $values := (index . 0).Values -}}
{{- $kind := index . 1 -}}
{{- $ports := list -}}
{{- range index $values.networkPolicy (print $kind "Ports") }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- $urls := dict "https" ($values.oidc.issuers | default list) "smtp" (list $values.smtp.url) "collector" (list $values.tracing.endpoint) -}}
{{- $_ := set $urls "redis" (regexSplit "," ($values.redis.url | default "") -1) -}}
{{- $scheme := "" -}}
{{- range compact (index $urls $kind) -}}
{{- /* The Sentinels share one scheme, and the ports of Redis itself are not in the URL. */ -}}
{{- $scheme = regexFind "^[a-z+]+://" (trim .) | default $scheme -}}
{{- $host := trim . | trimPrefix $scheme | splitList "/" | first | splitList "@" | last -}}
{{- $port := regexFind ":[0-9]+$" $host | trimPrefix ":" -}}
{{- $ports = append $ports ($port | default (include "sluice.defaultPort" $scheme) | int) -}}
{{- end -}}
{{- toJson (uniq $ports) -}}
{{- end -}}

{{- define "sluice.defaultPort" -}}
{{- $known := dict "http://" 80 "https://" 443 "smtp://" 587 "smtps://" 465 "redis://" 6379 "rediss://" 6379 -}}
{{- get $known . | default 26379 -}}
{{- end -}}

{{/* The NetworkPolicy rules for public addresses and allowed networks, except for refused networks. */}}
{{- define "sluice.endpointRules" -}}
{{- $ofCluster := concat .Values.networkPolicy.clusterNetworks .Values.networkPolicy.clusterNetworksV6 -}}
{{- $refused := .Values.refusedNetworks | default list -}}
{{- $allowed := .Values.allowedNetworks | default list -}}
{{- $public := concat $ofCluster $refused -}}
{{- $blocks := list (dict "cidr" "0.0.0.0/0" "refused" $public) (dict "cidr" "::/0" "refused" $public) -}}
{{- range $allowed }}{{ $blocks = append $blocks (dict "cidr" . "refused" $refused) }}{{ end -}}
{{- $bitsOf := dict -}}
{{- range concat $public $allowed (list "0.0.0.0/0" "::/0") }}{{ $_ := set $bitsOf . (include "sluice.bits" .) }}{{ end -}}
{{- range $block := $blocks }}
{{- $bits := get $bitsOf $block.cidr }}
{{- $isRefused := false }}
{{- $except := list }}
{{- range $network := $block.refused }}
{{- $of := get $bitsOf $network }}
{{- if hasPrefix $of $bits }}
{{- $isRefused = true }}
{{- else if hasPrefix $bits $of }}
{{- /* Kubernetes only accepts exceptions that are part of the network. */}}
{{- $except = append $except (include "sluice.network" $network) }}
{{- end }}
{{- end }}
{{- if not $isRefused }}
{{- $ipBlock := dict "cidr" (include "sluice.network" $block.cidr) }}
{{- if $except }}{{ $_ := set $ipBlock "except" (uniq $except) }}{{ end }}
- to: [{ipBlock: {{ toJson $ipBlock }}}]
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether a text is a network in CIDR notation with an address and a prefix that exist. It is empty if not. */}}
{{- define "sluice.isNetwork" -}}
{{- $octet := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" -}}
{{- $v4 := printf "%s([.]%s){3}" $octet $octet -}}
{{- $group := "[0-9a-f]{1,4}" -}}
{{- $address := splitList "/" . | first | lower -}}
{{- $halves := splitList "::" $address -}}
{{- if regexMatch (printf "^%s/(3[0-2]|[12]?[0-9])$" $v4) . -}}
true
{{- else if not (regexMatch "^[^/]+/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$" .) -}}
{{- else if eq (len $halves) 1 -}}
{{- if regexMatch (printf "^(%s:){6}(%s:%s|%s)$" $group $group $group $v4) $address }}true{{ end -}}
{{- else if eq (len $halves) 2 -}}
{{- $isLeft := regexMatch (printf "^((%s:)*%s)?$" $group $group) (first $halves) -}}
{{- $isRight := regexMatch (printf "^((%s:)*(%s|%s))?$" $group $group $v4) (last $halves) -}}
{{- /* The two colons stand for at least one group. */ -}}
{{- if and $isLeft $isRight (le (len (print (include "sluice.hex" (first $halves)) (include "sluice.hex" (last $halves)))) 28) }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* A network in CIDR notation, without the bits beyond its prefix, which Kubernetes rejects. */}}
{{- define "sluice.network" -}}
{{- $length := splitList "/" . | last | int -}}
{{- $address := splitList "/" . | first | lower -}}
{{- $isV6 := contains ":" $address -}}
{{- $digits := splitList (ternary "" "." $isV6) (ternary (include "sluice.digits" $address) $address $isV6) -}}
{{- $width := ternary 4 8 $isV6 -}}
{{- $kept := list -}}
{{- range $index, $digit := $digits -}}
{{- $beyond := sub $width (max 0 (min $width (sub $length (mul $index $width)))) | int -}}
{{- $unit := index (list 1 2 4 8 16 32 64 128 256) $beyond -}}
{{- $number := int (get (include "sluice.hexDigits" . | fromJson) $digit | default $digit) -}}
{{- $kept = append $kept (printf (ternary "%x" "%d" $isV6) (mul (div $number $unit) $unit)) -}}
{{- end -}}
{{- if eq (join "" $digits) (join "" $kept) -}}
{{- . -}}
{{- else if $isV6 -}}
{{- $groups := regexFindAll "[0-9a-f]{4}" (join "" $kept) -1 | join ":" -}}
{{- regexReplaceAll "(^|:)0{1,3}" (regexReplaceAll "(:0000)+$" $groups "::") "${1}" }}/{{ $length -}}
{{- else -}}
{{- join "." $kept }}/{{ $length -}}
{{- end -}}
{{- end -}}

{{/* The prefix bits of a network in CIDR notation, e.g. "v4:00001010" for 10.0.0.0/8. */}}
{{- define "sluice.bits" -}}
{{- $address := first (splitList "/" .) | lower -}}
{{- $bits := "" -}}
{{- if contains ":" $address -}}
{{- $values := include "sluice.hexDigits" . | fromJson -}}
{{- range splitList "" (include "sluice.digits" $address) -}}
{{- $bits = print $bits (printf "%04b" (get $values . | default . | int)) -}}
{{- end -}}
{{- else -}}
{{- range splitList "." $address }}{{ $bits = printf "%s%08b" $bits (atoi .) }}{{ end -}}
{{- end -}}
{{- ternary "v6:" "v4:" (contains ":" $address) -}}
{{- trunc (last (splitList "/" .) | int) $bits -}}
{{- end -}}

{{- define "sluice.hexDigits" -}}
{"a": 10, "b": 11, "c": 12, "d": 13, "e": 14, "f": 15}
{{- end -}}

{{/* The 32 digits of an IPv6 address in lowercase. */}}
{{- define "sluice.digits" -}}
{{- $halves := splitList "::" . -}}
{{- $left := include "sluice.hex" (first $halves) -}}
{{- $right := include "sluice.hex" (rest $halves | join "") -}}
{{- $zeros := max 0 (sub 32 (add (len $left) (len $right))) | int -}}
{{- print $left (repeat $zeros "0") $right -}}
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
