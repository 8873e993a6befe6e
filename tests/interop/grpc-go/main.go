// gRPC's own interoperability tests, as a server and as a client: https://github.com/grpc/grpc, doc/interop-test-descriptions.md.
//
//	grpc-interop serve ADDRESS
//	grpc-interop call ADDRESS AUTHORITY CASE...
//
// Each case prints its name when it has passed; a failure ends the program.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

const deadline = 20 * time.Second

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve":
		serve(os.Args[2])
	case len(os.Args) > 4 && os.Args[1] == "call":
		call(os.Args[2], os.Args[3], os.Args[4:])
	default:
		log.Fatal("grpc-interop serve ADDRESS | call ADDRESS AUTHORITY CASE...")
	}
}

func serve(address string) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor((&refusals{tries: map[string]int{}}).answer))
	testpb.RegisterTestServiceServer(server, interop.NewTestServer())
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	fmt.Println("listening")
	log.Fatal(server.Serve(listener))
}

// Refuses calls that ask for it by their metadata: "x-fail-twice" names a call whose first two tries are UNAVAILABLE,
// which the mesh tries again by default; "x-needs-attempts" is how many tries the client's library must have made before.
type refusals struct {
	lock  sync.Mutex
	tries map[string]int
}

func (r *refusals) answer(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	for _, name := range metadata.ValueFromIncomingContext(ctx, "x-fail-twice") {
		r.lock.Lock()
		r.tries[name]++
		count := r.tries[name]
		r.lock.Unlock()
		if count <= 2 {
			return nil, status.Error(codes.Unavailable, "not yet")
		}
	}
	for _, needed := range metadata.ValueFromIncomingContext(ctx, "x-needs-attempts") {
		before := metadata.ValueFromIncomingContext(ctx, "grpc-previous-rpc-attempts")
		if len(before) != 1 || before[0] != needed {
			return nil, status.Error(codes.ResourceExhausted, "not yet")
		}
	}
	return next(ctx, request)
}

func dial(address, authority string, options ...grpc.DialOption) *grpc.ClientConn {
	connection, err := grpc.NewClient("passthrough:///"+address,
		append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(authority))...)
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func call(address, authority string, names []string) {
	connection := dial(address, authority)
	defer connection.Close()
	retrying := dial(address, authority, grpc.WithDefaultServiceConfig(retryPolicy))
	defer retrying.Close()
	cases["own_retry"] = func(ctx context.Context, _ *grpc.ClientConn) {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-needs-attempts", "2")
		interop.DoEmptyUnaryCall(ctx, testpb.NewTestServiceClient(retrying))
	}
	for _, name := range names {
		test, found := cases[name]
		if !found {
			log.Fatalf("no case %s", name)
		}
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		test(ctx, connection)
		cancel()
		fmt.Println("passed", name)
	}
}

const retryPolicy = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
	"maxBackoff": "0.1s", "backoffMultiplier": 2, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`

type test func(ctx context.Context, connection *grpc.ClientConn)

var cases = map[string]test{
	"empty_unary":                 of(interop.DoEmptyUnaryCall),
	"large_unary":                 of(interop.DoLargeUnaryCall),
	"client_streaming":            of(interop.DoClientStreaming),
	"server_streaming":            of(interop.DoServerStreaming),
	"ping_pong":                   of(interop.DoPingPong),
	"empty_stream":                of(interop.DoEmptyStream),
	"timeout_on_sleeping_server":  of(interop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          of(interop.DoCancelAfterBegin),
	"cancel_after_first_response": of(interop.DoCancelAfterFirstResponse),
	"custom_metadata":             of(interop.DoCustomMetadata),
	"status_code_and_message":     of(interop.DoStatusCodeAndMessage),
	"special_status_message":      of(interop.DoSpecialStatusMessage),
	"unimplemented_method": func(ctx context.Context, connection *grpc.ClientConn) {
		interop.DoUnimplementedMethod(ctx, connection)
	},
	"unimplemented_service": func(ctx context.Context, connection *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(connection))
	},
	"mesh_retry": func(ctx context.Context, connection *grpc.ClientConn) {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-fail-twice", fmt.Sprint("go ", os.Getpid()))
		interop.DoEmptyUnaryCall(ctx, testpb.NewTestServiceClient(connection))
	},
	"health":     checkHealth,
	"reflection": reflect,
}

func of(run func(context.Context, testpb.TestServiceClient, ...grpc.CallOption)) test {
	return func(ctx context.Context, connection *grpc.ClientConn) {
		run(ctx, testpb.NewTestServiceClient(connection))
	}
}

func checkHealth(ctx context.Context, connection *grpc.ClientConn) {
	client := healthpb.NewHealthClient(connection)
	answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || answer.Status != healthpb.HealthCheckResponse_SERVING {
		log.Fatalf("health: %v, %v", answer, err)
	}
	_, err = client.Check(metadata.AppendToOutgoingContext(ctx, "x-a", "b"), &healthpb.HealthCheckRequest{Service: "none"})
	if status.Code(err) != codes.NotFound {
		log.Fatalf("health of no service: %v", err)
	}
}

func reflect(ctx context.Context, connection *grpc.ClientConn) {
	stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		log.Fatalf("reflection: %v", err)
	}
	question := &reflectionpb.ServerReflectionRequest_ListServices{ListServices: "*"}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: question}); err != nil {
		log.Fatalf("reflection: %v", err)
	}
	answer, err := stream.Recv()
	if err != nil {
		log.Fatalf("reflection: %v", err)
	}
	for _, service := range answer.GetListServicesResponse().GetService() {
		if service.Name == "grpc.testing.TestService" {
			return
		}
	}
	log.Fatalf("reflection names no test service: %v", answer)
}
