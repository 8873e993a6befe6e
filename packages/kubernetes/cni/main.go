// The CNI plug-in that a container runtime starts for each pod: it asks the DaemonSet's program on this node, over a
// Unix socket, to capture the pod, and passes the result of the plug-in before it on. Everything else is decided there.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const newestVersion = "1.1.0"

var versions = []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// Codes of the CNI specification.
const (
	codeVersion       = 1
	codeEnvironment   = 4
	codeConfiguration = 7
	codeTryAgain      = 11
)

const maxConfigBytes = 1 << 20
const maxReplyBytes = 1 << 16
const timeout = 30 * time.Second

type config struct {
	CniVersion        string          `json:"cniVersion"`
	Socket            string          `json:"socket"`
	ExcludeNamespaces []string        `json:"excludeNamespaces"`
	PrevResult        json.RawMessage `json:"prevResult"`
}

type request struct {
	Command     string `json:"command"`
	ContainerID string `json:"containerId"`
	Network     string `json:"network"`
	Namespace   string `json:"namespace"`
	Pod         string `json:"pod"`
	UID         string `json:"uid"`
}

type reply struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

type failure struct {
	code    int
	message string
}

func (f failure) Error() string { return f.message }

func main() {
	version := newestVersion
	if err := run(&version); err != nil {
		code := codeTryAgain
		var known failure
		if errors.As(err, &known) {
			code = known.code
		}
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"cniVersion": version, "code": code, "msg": "tulle-cni: " + err.Error()})
		os.Exit(1)
	}
}

func run(version *string) error {
	command := os.Getenv("CNI_COMMAND")
	if command == "VERSION" {
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"cniVersion": newestVersion, "supportedVersions": versions})
	}
	input, err := io.ReadAll(io.LimitReader(os.Stdin, maxConfigBytes))
	if err != nil {
		return err
	}
	var settings config
	if err := json.Unmarshal(input, &settings); err != nil {
		return failure{codeConfiguration, "its configuration is no JSON: " + err.Error()}
	}
	if !slices.Contains(versions, settings.CniVersion) {
		return failure{codeVersion, fmt.Sprintf("cniVersion %q is not one of %s", settings.CniVersion, strings.Join(versions, ", "))}
	}
	*version = settings.CniVersion
	switch command {
	case "ADD":
		return add(settings)
	case "CHECK":
		return ask(settings, command)
	case "DEL", "GC", "STATUS":
		// Rules end with the pod's network, and pods of the excluded namespaces are always served.
		return nil
	}
	return failure{codeEnvironment, fmt.Sprintf("CNI_COMMAND is %q", command)}
}

func add(settings config) error {
	if len(settings.PrevResult) == 0 {
		return failure{codeConfiguration, "it has to come after the plug-in that makes the pod's network"}
	}
	if err := ask(settings, "ADD"); err != nil {
		return err
	}
	_, err := os.Stdout.Write(settings.PrevResult)
	return err
}

func ask(settings config, command string) error {
	args := arguments(os.Getenv("CNI_ARGS"))
	namespace := args["K8S_POD_NAMESPACE"]
	// Not a pod, or one without which the program that is asked could not start.
	if namespace == "" || slices.Contains(settings.ExcludeNamespaces, namespace) {
		return nil
	}
	if err := isRootsAlone(filepath.Dir(settings.Socket)); err != nil {
		return err
	}
	connection, err := net.DialTimeout("unix", settings.Socket, timeout)
	if err != nil {
		return fmt.Errorf("the program that captures pods does not run on this node: %w", err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(timeout))
	asked := request{command, os.Getenv("CNI_CONTAINERID"), os.Getenv("CNI_NETNS"), namespace, args["K8S_POD_NAME"], args["K8S_POD_UID"]}
	if err := json.NewEncoder(connection).Encode(asked); err != nil {
		return err
	}
	var answer reply
	if err := json.NewDecoder(io.LimitReader(connection, maxReplyBytes)).Decode(&answer); err != nil {
		return fmt.Errorf("the program that captures pods gave no answer: %w", err)
	}
	if !answer.OK {
		return errors.New(answer.Error)
	}
	return nil
}

// Whoever could put another socket in its place would decide which pods are captured.
func isRootsAlone(folder string) error {
	stats, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("the program that captures pods does not run on this node: %w", err)
	}
	system, isSystem := stats.Sys().(*syscall.Stat_t)
	if !stats.IsDir() || !isSystem || system.Uid != 0 || stats.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not root's alone", folder)
	}
	return nil
}

func arguments(text string) map[string]string {
	found := map[string]string{}
	for _, pair := range strings.Split(text, ";") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			found[name] = value
		}
	}
	return found
}
