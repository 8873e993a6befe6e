// Asks for each address by Go's own HTTP client (built without cgo, so by its own resolver too), and prints the answers.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	for _, address := range os.Args[1:] {
		answer, err := http.Get(address)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		fmt.Print(string(body))
	}
}
