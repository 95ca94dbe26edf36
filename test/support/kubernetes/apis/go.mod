module sluice.dev/test/support/kubernetes/apis

go 1.26.0

// Only their CustomResourceDefinitions are used, nothing is built.
require (
	github.com/cert-manager/cert-manager v1.18.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	sigs.k8s.io/gateway-api v1.6.3
)
