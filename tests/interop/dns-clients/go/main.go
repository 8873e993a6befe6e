// Looks names up by Go's own resolver (built without cgo), and prints what each of them is.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	for _, name := range os.Args[1:] {
		addresses, err := net.LookupHost(name)
		var failure *net.DNSError
		if errors.As(err, &failure) && failure.IsNotFound {
			addresses = []string{"none"}
		} else if err != nil {
			addresses = []string{err.Error()}
		}
		fmt.Printf("%s %s\n", name, strings.Join(addresses, ","))
	}
}
