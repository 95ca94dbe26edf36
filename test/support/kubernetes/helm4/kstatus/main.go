// Judges objects by kstatus, as the waiter of Helm 4 and Flux do. Each line of the standard input is an object in JSON,
// and answered by a line `{"status":…,"message":…}`.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	input, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	input.Buffer(nil, 1<<20)
	for input.Scan() {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(input.Bytes()); err != nil {
			log.Fatal(err)
		}
		verdict, err := status.Compute(object)
		if err != nil {
			log.Fatal(err)
		}
		answer := map[string]string{"status": verdict.Status.String(), "message": verdict.Message}
		if err := answers.Encode(answer); err != nil {
			log.Fatal(err)
		}
	}
	if err := input.Err(); err != nil {
		log.Fatal(err)
	}
}
