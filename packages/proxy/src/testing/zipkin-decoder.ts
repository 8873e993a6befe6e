// Reads the protobuf of Zipkin's API (zipkin.proto3 of zipkin-api) by a library that is not ours, into what its JSON
// says.
import { fromJSON, type MessageTypeDefinition } from "@grpc/proto-loader";

const field = (id: number, type: string, rule?: "repeated") => ({ id, type, ...(rule && { rule }) });

/** The library knows maps; its types do not. */
const map = { keyType: "string", id: 11, type: "string" } as { readonly id: number; readonly type: string };

const definition = fromJSON(
  {
    nested: {
      zipkin: {
        nested: {
          Endpoint: {
            fields: {
              serviceName: field(1, "string"),
              ipv4: field(2, "bytes"),
              ipv6: field(3, "bytes"),
              port: field(4, "int32"),
            },
          },
          Annotation: { fields: { timestamp: field(1, "fixed64"), value: field(2, "string") } },
          Span: {
            fields: {
              traceId: field(1, "bytes"),
              parentId: field(2, "bytes"),
              id: field(3, "bytes"),
              kind: field(4, "Kind"),
              name: field(5, "string"),
              timestamp: field(6, "fixed64"),
              duration: field(7, "uint64"),
              localEndpoint: field(8, "Endpoint"),
              remoteEndpoint: field(9, "Endpoint"),
              annotations: field(10, "Annotation", "repeated"),
              tags: map,
              debug: field(12, "bool"),
              shared: field(13, "bool"),
            },
            nested: { Kind: { values: { UNSPECIFIED: 0, CLIENT: 1, SERVER: 2, PRODUCER: 3, CONSUMER: 4 } } },
          },
          ListOfSpans: { fields: { spans: field(1, "Span", "repeated") } },
        },
      },
    },
  },
  { enums: String, longs: Number, keepCase: true },
);
const list = definition["zipkin.ListOfSpans"] as MessageTypeDefinition<object, object>;

/** As JSON has it. */
export interface ZipkinSpan {
  readonly traceId: string;
  readonly id: string;
  readonly parentId?: string;
  readonly name: string;
  readonly kind: string;
  readonly shared?: boolean;
  /** Microseconds. */
  readonly timestamp: number;
  readonly duration: number;
  readonly tags?: Readonly<Record<string, string>>;
  readonly annotations?: readonly { readonly value: string }[];
  readonly localEndpoint?: { readonly serviceName?: string };
}

type DecodedSpan = Omit<ZipkinSpan, "traceId" | "parentId" | "id"> & {
  readonly traceId: Buffer;
  readonly parentId?: Buffer;
  readonly id: Buffer;
};

/** Envoy on a little-endian machine turns ids of spans around (its zipkin_core_types.cc), but not those of traces. */
export type ByteOrder = "as sent" | "turned around";

export function decodeZipkinSpans(body: Buffer, order: ByteOrder): readonly ZipkinSpan[] {
  const { spans = [] } = list.deserialize(body) as { readonly spans?: readonly DecodedSpan[] };
  const idOf = (bytes: Buffer): string => (order === "as sent" ? bytes : Buffer.from(bytes).reverse()).toString("hex");
  return spans.map(({ traceId, parentId, id, ...rest }) => ({
    ...rest,
    traceId: traceId.toString("hex"),
    id: idOf(id),
    ...(parentId === undefined ? {} : { parentId: idOf(parentId) }),
  }));
}
