// Prints, as one serialized google.protobuf.FileDescriptorSet, every protobuf file that is reachable from Envoy's
// published Go API. It is the first half of `npm run generate:xds`: the Go modules carry Envoy's own descriptors, exact
// for the pinned release, without the .proto files.
package main

import (
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var visit func(file protoreflect.FileDescriptor)
	visit = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := 0; i < file.Imports().Len(); i++ {
			visit(file.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		visit(file)
		return true
	})
	bytes, err := proto.Marshal(set)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(bytes); err != nil {
		panic(err)
	}
}
