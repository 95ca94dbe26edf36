// Judges objects as Argo CD does. The argument is the path of the ConfigMap argocd-cm; each line of the standard input
// is an object in JSON, and answered by a line `{"status":…,"message":…}`.
//
// `argocd admin settings resource-overrides health` does the same for one object, in half a second.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	logrus "github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

const namespace = "argocd"

func main() {
	logrus.SetLevel(logrus.WarnLevel)
	overrides, err := readOverrides(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	input, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	input.Buffer(nil, 1<<20)
	for input.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(input.Bytes()); err != nil {
			log.Fatal(err)
		}
		verdict, err := health.GetResourceHealth(object, overrides)
		if err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(verdict); err != nil {
			log.Fatal(err)
		}
	}
	if err := input.Err(); err != nil {
		log.Fatal(err)
	}
}

func readOverrides(path string) (lua.ResourceHealthOverrides, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config := &corev1.ConfigMap{}
	if err := yaml.Unmarshal(text, config); err != nil {
		return nil, err
	}
	labels := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	config.ObjectMeta = metav1.ObjectMeta{Name: common.ArgoCDConfigMapName, Namespace: namespace, Labels: labels}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: common.ArgoCDSecretName, Namespace: namespace, Labels: labels},
		Data:       map[string][]byte{"server.secretkey": []byte("test")},
	}
	manager := settings.NewSettingsManager(context.Background(), fake.NewClientset(config, secret), namespace)
	return manager.GetResourceOverrides()
}
