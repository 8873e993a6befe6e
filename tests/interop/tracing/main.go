// Jaeger, and the OpenTelemetry collector, as small as they get: `jaeger` keeps its spans in memory, takes them by OTLP
// and answers its query API; `collector` takes OTLP and passes it on, as its configuration says. One module, since most
// of what they are built of is the same.
package main

import (
	"log"
	"os"
	"os/signal"
	"syscall"

	collectorApp "github.com/jaegertracing/jaeger/cmd/collector/app"
	collectorFlags "github.com/jaegertracing/jaeger/cmd/collector/app/flags"
	queryApp "github.com/jaegertracing/jaeger/cmd/query/app"
	"github.com/jaegertracing/jaeger/cmd/query/app/querysvc"
	"github.com/jaegertracing/jaeger/pkg/config"
	"github.com/jaegertracing/jaeger/pkg/healthcheck"
	"github.com/jaegertracing/jaeger/pkg/metrics"
	"github.com/jaegertracing/jaeger/pkg/telemetery"
	"github.com/jaegertracing/jaeger/pkg/tenancy"
	"github.com/jaegertracing/jaeger/plugin/metrics/disabled"
	"github.com/jaegertracing/jaeger/plugin/storage/memory"
	"github.com/spf13/cobra"
	"github.com/spf13/viper"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

func main() {
	command := &cobra.Command{Use: "tracing"}
	command.AddCommand(jaeger(), collector(), application())
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}

// collector takes the flags of OpenTelemetry's: `--config PATH`.
func collector() *cobra.Command {
	return otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector"},
		Factories: func() (otelcol.Factories, error) {
			receivers, err := receiver.MakeFactoryMap(otlpreceiver.NewFactory())
			if err != nil {
				return otelcol.Factories{}, err
			}
			exporters, err := exporter.MakeFactoryMap(otlpexporter.NewFactory(), otlphttpexporter.NewFactory())
			return otelcol.Factories{Receivers: receivers, Exporters: exporters}, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			DefaultScheme:     "file",
		}},
	})
}

// jaeger takes the flags of Jaeger's all-in-one, as far as they are about receiving and asking.
func jaeger() *cobra.Command {
	v := viper.New()
	command := &cobra.Command{Use: "jaeger", RunE: func(*cobra.Command, []string) error {
		logger, err := zap.NewProduction()
		if err != nil {
			return err
		}
		return serveJaeger(v, logger)
	}}
	config.AddFlags(v, command, collectorFlags.AddFlags, queryApp.AddFlags)
	return command
}

func serveJaeger(v *viper.Viper, logger *zap.Logger) error {
	storage := memory.NewFactory()
	if err := storage.Initialize(metrics.NullFactory, logger); err != nil {
		return err
	}
	reader, err := storage.CreateSpanReader()
	if err != nil {
		return err
	}
	writer, err := storage.CreateSpanWriter()
	if err != nil {
		return err
	}
	dependencies, err := storage.CreateDependencyReader()
	if err != nil {
		return err
	}
	receiving, err := new(collectorFlags.CollectorOptions).InitFromViper(v, logger)
	if err != nil {
		return err
	}
	health := healthcheck.New()
	tenants := tenancy.NewManager(&receiving.GRPC.Tenancy)
	receiver := collectorApp.New(&collectorApp.CollectorParams{
		ServiceName: "jaeger", Logger: logger, MetricsFactory: metrics.NullFactory,
		SpanWriter: writer, HealthCheck: health, TenancyMgr: tenants,
	})
	if err := receiver.Start(receiving); err != nil {
		return err
	}
	asking, err := new(queryApp.QueryOptions).InitFromViper(v, logger)
	if err != nil {
		return err
	}
	noMetrics, err := disabled.NewMetricsReader()
	if err != nil {
		return err
	}
	service := querysvc.NewQueryService(reader, dependencies, querysvc.QueryServiceOptions{})
	server, err := queryApp.NewServer(service, noMetrics, asking, tenants, telemetery.Setting{
		Logger: logger, TracerProvider: noop.NewTracerProvider(), Metrics: metrics.NullFactory,
		ReportStatus: telemetery.HCAdapter(health),
	})
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return server.Close()
}
