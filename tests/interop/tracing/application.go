package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// application has OpenTelemetry's SDK for Go as its guide has it; no sampler is chosen, and the propagators are the
// guide's, since Go has none by default. It asks the next of the applications that `next` names for the rest of them,
// and answers what they say behind its own name.
func application() *cobra.Command {
	return &cobra.Command{Use: "application", RunE: func(command *cobra.Command, _ []string) error {
		exporter, err := otlptracehttp.New(command.Context())
		if err != nil {
			return err
		}
		otel.SetTracerProvider(sdk.NewTracerProvider(sdk.WithBatcher(exporter)))
		otel.SetTextMapPropagator(
			propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
		client := &http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport)}
		handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			text, err := ask(request.Context(), client, request.URL.Query().Get("next"))
			if err != nil {
				http.Error(response, err.Error(), http.StatusBadGateway)
				return
			}
			fmt.Fprint(response, strings.TrimSpace("go "+text))
		})
		fmt.Println("listens")
		return http.ListenAndServe(os.Getenv("HOST")+":8080", otelhttp.NewHandler(handler, "GET"))
	}}
}

func ask(ctx context.Context, client *http.Client, next string) (string, error) {
	host, rest, _ := strings.Cut(next, ",")
	if host == "" {
		return "", nil
	}
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+host+":8080/?next="+rest, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}
