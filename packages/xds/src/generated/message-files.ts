// Written by tools/generate-xds.ts: the top-level messages of each generated file; the folder is the package.
export const messageFiles: Readonly<Record<string, readonly string[]>> = {
  "cel/expr/checked_pb": [
    "CheckedExpr",
    "Type",
    "Decl",
    "Reference"
  ],
  "cel/expr/syntax_pb": [
    "ParsedExpr",
    "Expr",
    "Constant",
    "SourceInfo"
  ],
  "envoy/admin/v3/clusters_pb": [
    "Clusters",
    "ClusterStatus",
    "HostStatus",
    "HostHealthStatus"
  ],
  "envoy/admin/v3/config_dump_pb": [
    "ConfigDump",
    "BootstrapConfigDump",
    "SecretsConfigDump"
  ],
  "envoy/admin/v3/config_dump_shared_pb": [
    "UpdateFailureState",
    "ListenersConfigDump",
    "ClustersConfigDump",
    "RoutesConfigDump",
    "ScopedRoutesConfigDump",
    "EndpointsConfigDump",
    "EcdsConfigDump"
  ],
  "envoy/admin/v3/listeners_pb": [
    "Listeners",
    "ListenerStatus"
  ],
  "envoy/admin/v3/metrics_pb": [
    "SimpleMetric"
  ],
  "envoy/admin/v3/server_info_pb": [
    "ServerInfo",
    "CommandLineOptions"
  ],
  "envoy/config/accesslog/v3/accesslog_pb": [
    "AccessLog",
    "AccessLogFilter",
    "ComparisonFilter",
    "StatusCodeFilter",
    "DurationFilter",
    "NotHealthCheckFilter",
    "TraceableFilter",
    "RuntimeFilter",
    "AndFilter",
    "OrFilter",
    "HeaderFilter",
    "ResponseFlagFilter",
    "GrpcStatusFilter",
    "MetadataFilter",
    "LogTypeFilter",
    "ExtensionFilter"
  ],
  "envoy/config/bootstrap/v3/bootstrap_pb": [
    "Bootstrap",
    "Admin",
    "ClusterManager",
    "Watchdogs",
    "Watchdog",
    "FatalAction",
    "Runtime",
    "RuntimeLayer",
    "LayeredRuntime",
    "CustomInlineHeader",
    "MemoryAllocatorManager",
    "ListenerManager",
    "ValidationListenerManager",
    "ApiListenerManager"
  ],
  "envoy/config/cluster/v3/circuit_breaker_pb": [
    "CircuitBreakers"
  ],
  "envoy/config/cluster/v3/cluster_pb": [
    "ClusterCollection",
    "Cluster",
    "LoadBalancingPolicy",
    "UpstreamConnectionOptions",
    "TrackClusterStats"
  ],
  "envoy/config/cluster/v3/filter_pb": [
    "Filter"
  ],
  "envoy/config/cluster/v3/outlier_detection_pb": [
    "OutlierDetection"
  ],
  "envoy/config/common/key_value/v3/config_pb": [
    "KeyValueStoreConfig"
  ],
  "envoy/config/common/matcher/v3/matcher_pb": [
    "Matcher",
    "MatchPredicate",
    "HttpHeadersMatch",
    "HttpGenericBodyMatch"
  ],
  "envoy/config/common/mutation_rules/v3/mutation_rules_pb": [
    "HeaderMutationRules",
    "HeaderMutation"
  ],
  "envoy/config/core/v3/address_pb": [
    "Pipe",
    "EnvoyInternalAddress",
    "SocketAddress",
    "TcpKeepalive",
    "ExtraSourceAddress",
    "BindConfig",
    "Address",
    "CidrRange"
  ],
  "envoy/config/core/v3/backoff_pb": [
    "BackoffStrategy"
  ],
  "envoy/config/core/v3/base_pb": [
    "Locality",
    "BuildVersion",
    "Extension",
    "Node",
    "Metadata",
    "RuntimeUInt32",
    "RuntimeUInt64",
    "RuntimePercent",
    "RuntimeDouble",
    "RuntimeFeatureFlag",
    "KeyValue",
    "KeyValuePair",
    "KeyValueAppend",
    "KeyValueMutation",
    "QueryParameter",
    "HeaderValue",
    "HeaderValueOption",
    "HeaderMap",
    "WatchedDirectory",
    "DataSource",
    "RetryPolicy",
    "RemoteDataSource",
    "AsyncDataSource",
    "TransportSocket",
    "RuntimeFractionalPercent",
    "ControlPlane"
  ],
  "envoy/config/core/v3/cel_pb": [
    "CelExpressionConfig"
  ],
  "envoy/config/core/v3/config_source_pb": [
    "ApiConfigSource",
    "AggregatedConfigSource",
    "SelfConfigSource",
    "RateLimitSettings",
    "PathConfigSource",
    "ConfigSource",
    "ExtensionConfigSource"
  ],
  "envoy/config/core/v3/event_service_config_pb": [
    "EventServiceConfig"
  ],
  "envoy/config/core/v3/extension_pb": [
    "TypedExtensionConfig"
  ],
  "envoy/config/core/v3/grpc_method_list_pb": [
    "GrpcMethodList"
  ],
  "envoy/config/core/v3/grpc_service_pb": [
    "GrpcService"
  ],
  "envoy/config/core/v3/health_check_pb": [
    "HealthStatusSet",
    "HealthCheck"
  ],
  "envoy/config/core/v3/http_service_pb": [
    "HttpService"
  ],
  "envoy/config/core/v3/http_uri_pb": [
    "HttpUri"
  ],
  "envoy/config/core/v3/protocol_pb": [
    "TcpProtocolOptions",
    "QuicKeepAliveSettings",
    "QuicProtocolOptions",
    "UpstreamHttpProtocolOptions",
    "AlternateProtocolsCacheOptions",
    "HttpProtocolOptions",
    "Http1ProtocolOptions",
    "KeepaliveSettings",
    "Http2ProtocolOptions",
    "GrpcProtocolOptions",
    "Http3ProtocolOptions",
    "SchemeHeaderTransformation"
  ],
  "envoy/config/core/v3/proxy_protocol_pb": [
    "ProxyProtocolPassThroughTLVs",
    "TlvEntry",
    "ProxyProtocolConfig",
    "PerHostConfig"
  ],
  "envoy/config/core/v3/resolver_pb": [
    "DnsResolverOptions",
    "DnsResolutionConfig"
  ],
  "envoy/config/core/v3/socket_cmsg_headers_pb": [
    "SocketCmsgHeaders"
  ],
  "envoy/config/core/v3/socket_option_pb": [
    "SocketOption",
    "SocketOptionsOverride"
  ],
  "envoy/config/core/v3/substitution_format_string_pb": [
    "JsonFormatOptions",
    "SubstitutionFormatString"
  ],
  "envoy/config/core/v3/udp_socket_config_pb": [
    "UdpSocketConfig"
  ],
  "envoy/config/endpoint/v3/endpoint_components_pb": [
    "Endpoint",
    "LbEndpoint",
    "LbEndpointCollection",
    "LedsClusterLocalityConfig",
    "LocalityLbEndpoints"
  ],
  "envoy/config/endpoint/v3/endpoint_pb": [
    "ClusterLoadAssignment"
  ],
  "envoy/config/listener/v3/api_listener_pb": [
    "ApiListener"
  ],
  "envoy/config/listener/v3/listener_components_pb": [
    "Filter",
    "FilterChainMatch",
    "FilterChain",
    "ListenerFilterChainMatchPredicate",
    "ListenerFilter"
  ],
  "envoy/config/listener/v3/listener_pb": [
    "AdditionalAddress",
    "ListenerCollection",
    "Listener"
  ],
  "envoy/config/listener/v3/quic_config_pb": [
    "QuicProtocolOptions"
  ],
  "envoy/config/listener/v3/udp_listener_config_pb": [
    "UdpListenerConfig",
    "ActiveRawUdpListenerConfig"
  ],
  "envoy/config/metrics/v3/stats_pb": [
    "StatsSink",
    "StatsConfig",
    "StatsMatcher",
    "TagSpecifier",
    "HistogramBucketSettings",
    "StatsdSink",
    "DogStatsdSink",
    "HystrixSink"
  ],
  "envoy/config/overload/v3/overload_pb": [
    "ResourceMonitor",
    "ThresholdTrigger",
    "ScaledTrigger",
    "Trigger",
    "ScaleTimersOverloadActionConfig",
    "ShrinkHeapConfig",
    "OverloadAction",
    "LoadShedPoint",
    "BufferFactoryConfig",
    "OverloadManager"
  ],
  "envoy/config/rbac/v3/rbac_pb": [
    "RBAC",
    "Policy",
    "SourcedMetadata",
    "Permission",
    "Principal",
    "Action"
  ],
  "envoy/config/route/v3/route_components_pb": [
    "VirtualHost",
    "FilterAction",
    "RouteList",
    "Route",
    "WeightedCluster",
    "ClusterSpecifierPlugin",
    "RouteMatch",
    "CorsPolicy",
    "RouteAction",
    "RetryPolicy",
    "HedgePolicy",
    "RedirectAction",
    "DirectResponseAction",
    "NonForwardingAction",
    "Decorator",
    "Tracing",
    "VirtualCluster",
    "RateLimit",
    "HeaderMatcher",
    "QueryParameterMatcher",
    "CookieMatcher",
    "InternalRedirectPolicy",
    "FilterConfig"
  ],
  "envoy/config/route/v3/route_pb": [
    "RouteConfiguration",
    "Vhds"
  ],
  "envoy/config/route/v3/scoped_route_pb": [
    "ScopedRouteConfiguration"
  ],
  "envoy/config/trace/v3/datadog_pb": [
    "DatadogRemoteConfig",
    "DatadogConfig"
  ],
  "envoy/config/trace/v3/http_tracer_pb": [
    "Tracing"
  ],
  "envoy/config/trace/v3/opentelemetry_pb": [
    "OpenTelemetryConfig"
  ],
  "envoy/config/trace/v3/skywalking_pb": [
    "SkyWalkingConfig",
    "ClientConfig"
  ],
  "envoy/config/trace/v3/zipkin_pb": [
    "ZipkinConfig"
  ],
  "envoy/data/accesslog/v3/accesslog_pb": [
    "TCPAccessLogEntry",
    "HTTPAccessLogEntry",
    "ConnectionProperties",
    "AccessLogCommon",
    "ResponseFlags",
    "TLSProperties",
    "HTTPRequestProperties",
    "HTTPResponseProperties"
  ],
  "envoy/extensions/access_loggers/file/v3/file_pb": [
    "FileAccessLog"
  ],
  "envoy/extensions/access_loggers/filters/cel/v3/cel_pb": [
    "ExpressionFilter"
  ],
  "envoy/extensions/access_loggers/grpc/v3/als_pb": [
    "HttpGrpcAccessLogConfig",
    "TcpGrpcAccessLogConfig",
    "CommonGrpcAccessLogConfig"
  ],
  "envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb": [
    "OpenTelemetryAccessLogConfig"
  ],
  "envoy/extensions/access_loggers/stream/v3/stream_pb": [
    "StdoutAccessLog",
    "StderrAccessLog"
  ],
  "envoy/extensions/clusters/dns/v3/dns_cluster_pb": [
    "DnsCluster"
  ],
  "envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb": [
    "ClusterConfig",
    "SubClustersConfig"
  ],
  "envoy/extensions/common/dynamic_forward_proxy/v3/dns_cache_pb": [
    "DnsCacheCircuitBreakers",
    "DnsCacheConfig"
  ],
  "envoy/extensions/common/ratelimit/v3/ratelimit_pb": [
    "RateLimitDescriptor",
    "LocalRateLimitDescriptor",
    "LocalClusterRateLimit"
  ],
  "envoy/extensions/filters/common/fault/v3/fault_pb": [
    "FaultDelay",
    "FaultRateLimit"
  ],
  "envoy/extensions/filters/http/cors/v3/cors_pb": [
    "Cors",
    "CorsPolicy"
  ],
  "envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb": [
    "FilterConfig",
    "PerRouteConfig",
    "SubClusterConfig"
  ],
  "envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb": [
    "ExtAuthz",
    "ShadowDecision",
    "BufferSettings",
    "HttpService",
    "AuthorizationRequest",
    "AuthorizationResponse",
    "ExtAuthzPerRoute",
    "CheckSettings"
  ],
  "envoy/extensions/filters/http/fault/v3/fault_pb": [
    "FaultAbort",
    "HTTPFault"
  ],
  "envoy/extensions/filters/http/grpc_stats/v3/config_pb": [
    "FilterConfig",
    "FilterObject"
  ],
  "envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb": [
    "GrpcWeb"
  ],
  "envoy/extensions/filters/http/jwt_authn/v3/config_pb": [
    "JwtProvider",
    "JwtCacheConfig",
    "RemoteJwks",
    "JwksAsyncFetch",
    "JwtHeader",
    "ProviderWithAudiences",
    "JwtRequirement",
    "ExtractOnlyWithoutValidation",
    "JwtRequirementOrList",
    "JwtRequirementAndList",
    "RequirementRule",
    "FilterStateRule",
    "JwtAuthentication",
    "PerRouteConfig",
    "JwtClaimToHeader"
  ],
  "envoy/extensions/filters/http/local_ratelimit/v3/local_rate_limit_pb": [
    "LocalRateLimit"
  ],
  "envoy/extensions/filters/http/oauth2/v3/oauth_pb": [
    "CookieConfig",
    "CookieConfigs",
    "OAuth2Credentials",
    "PrivateKeyJwtConfig",
    "OAuth2TokenForwarding",
    "PostLogoutRedirectUri",
    "TokenCookieChunking",
    "OAuth2Config",
    "OAuth2PerRoute",
    "OAuth2"
  ],
  "envoy/extensions/filters/http/rbac/v3/rbac_pb": [
    "RBAC",
    "RBACPerRoute"
  ],
  "envoy/extensions/filters/http/router/v3/router_pb": [
    "Router"
  ],
  "envoy/extensions/filters/listener/http_inspector/v3/http_inspector_pb": [
    "HttpInspector"
  ],
  "envoy/extensions/filters/listener/original_dst/v3/original_dst_pb": [
    "OriginalDst"
  ],
  "envoy/extensions/filters/listener/original_src/v3/original_src_pb": [
    "OriginalSrc"
  ],
  "envoy/extensions/filters/listener/proxy_protocol/v3/proxy_protocol_pb": [
    "ProxyProtocol"
  ],
  "envoy/extensions/filters/listener/tls_inspector/v3/tls_inspector_pb": [
    "TlsInspector"
  ],
  "envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb": [
    "ExtAuthz"
  ],
  "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb": [
    "HttpConnectionManager",
    "ForwardProtoConfig",
    "LocalReplyConfig",
    "ResponseMapper",
    "Rds",
    "ScopedRouteConfigurationsList",
    "ScopedRoutes",
    "ScopedRds",
    "HttpFilter",
    "RequestIDExtension",
    "EnvoyMobileHttpConnectionManager"
  ],
  "envoy/extensions/filters/network/rbac/v3/rbac_pb": [
    "RBAC"
  ],
  "envoy/extensions/filters/network/sni_cluster/v3/sni_cluster_pb": [
    "SniCluster"
  ],
  "envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy_pb": [
    "FilterConfig"
  ],
  "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb": [
    "TcpProxy"
  ],
  "envoy/extensions/formatter/req_without_query/v3/req_without_query_pb": [
    "ReqWithoutQuery"
  ],
  "envoy/extensions/load_balancing_policies/common/v3/common_pb": [
    "LocalityLbConfig",
    "SlowStartConfig",
    "ConsistentHashingLbConfig",
    "OrcaOobReportingConfig"
  ],
  "envoy/extensions/load_balancing_policies/least_request/v3/least_request_pb": [
    "LeastRequest"
  ],
  "envoy/extensions/load_balancing_policies/random/v3/random_pb": [
    "Random"
  ],
  "envoy/extensions/load_balancing_policies/round_robin/v3/round_robin_pb": [
    "RoundRobin"
  ],
  "envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb": [
    "CaresDnsResolverConfig"
  ],
  "envoy/extensions/network/dns_resolver/getaddrinfo/v3/getaddrinfo_dns_resolver_pb": [
    "GetAddrInfoDnsResolverConfig"
  ],
  "envoy/extensions/request_id/uuid/v3/uuid_pb": [
    "UuidRequestIdConfig"
  ],
  "envoy/extensions/resource_monitors/downstream_connections/v3/downstream_connections_pb": [
    "DownstreamConnectionsConfig"
  ],
  "envoy/extensions/resource_monitors/fixed_heap/v3/fixed_heap_pb": [
    "FixedHeapConfig"
  ],
  "envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb": [
    "PreviousHostsPredicate"
  ],
  "envoy/extensions/stat_sinks/open_telemetry/v3/open_telemetry_pb": [
    "SinkConfig"
  ],
  "envoy/extensions/tracers/opentelemetry/resource_detectors/v3/environment_resource_detector_pb": [
    "EnvironmentResourceDetectorConfig"
  ],
  "envoy/extensions/tracers/opentelemetry/resource_detectors/v3/static_config_resource_detector_pb": [
    "StaticConfigResourceDetectorConfig"
  ],
  "envoy/extensions/tracers/opentelemetry/samplers/v3/always_on_sampler_pb": [
    "AlwaysOnSamplerConfig"
  ],
  "envoy/extensions/tracers/opentelemetry/samplers/v3/cel_sampler_pb": [
    "CELSamplerConfig"
  ],
  "envoy/extensions/tracers/opentelemetry/samplers/v3/parent_based_sampler_pb": [
    "ParentBasedSamplerConfig"
  ],
  "envoy/extensions/tracers/opentelemetry/samplers/v3/trace_id_ratio_based_sampler_pb": [
    "TraceIdRatioBasedSamplerConfig"
  ],
  "envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb": [
    "RawBuffer"
  ],
  "envoy/extensions/transport_sockets/tls/v3/common_pb": [
    "TlsParameters",
    "PrivateKeyProvider",
    "TlsCertificate",
    "TlsSessionTicketKeys",
    "CertificateProviderPluginInstance",
    "SubjectAltNameMatcher",
    "CertificateValidationContext"
  ],
  "envoy/extensions/transport_sockets/tls/v3/secret_pb": [
    "GenericSecret",
    "SdsSecretConfig",
    "Secret"
  ],
  "envoy/extensions/transport_sockets/tls/v3/tls_pb": [
    "UpstreamTlsContext",
    "DownstreamTlsContext",
    "TlsKeyLog",
    "CommonTlsContext"
  ],
  "envoy/extensions/upstreams/http/v3/http_protocol_options_pb": [
    "HttpProtocolOptions"
  ],
  "envoy/service/accesslog/v3/als_pb": [
    "StreamAccessLogsResponse",
    "StreamAccessLogsMessage"
  ],
  "envoy/service/auth/v3/attribute_context_pb": [
    "AttributeContext"
  ],
  "envoy/service/auth/v3/external_auth_pb": [
    "CheckRequest",
    "DeniedHttpResponse",
    "OkHttpResponse",
    "CheckResponse"
  ],
  "envoy/service/cluster/v3/cds_pb": [
    "CdsDummy"
  ],
  "envoy/service/discovery/v3/ads_pb": [
    "AdsDummy"
  ],
  "envoy/service/discovery/v3/discovery_pb": [
    "ResourceLocator",
    "ResourceName",
    "ResourceError",
    "DiscoveryRequest",
    "DiscoveryResponse",
    "DeltaDiscoveryRequest",
    "DeltaDiscoveryResponse",
    "DynamicParameterConstraints",
    "Resource"
  ],
  "envoy/service/endpoint/v3/eds_pb": [
    "EdsDummy"
  ],
  "envoy/service/extension/v3/config_discovery_pb": [
    "EcdsDummy"
  ],
  "envoy/service/listener/v3/lds_pb": [
    "LdsDummy"
  ],
  "envoy/service/route/v3/rds_pb": [
    "RdsDummy"
  ],
  "envoy/service/secret/v3/sds_pb": [
    "SdsDummy"
  ],
  "envoy/service/status/v3/csds_pb": [
    "ClientStatusRequest",
    "PerXdsConfig",
    "ClientConfig",
    "ClientStatusResponse"
  ],
  "envoy/type/http/v3/path_transformation_pb": [
    "PathTransformation"
  ],
  "envoy/type/matcher/v3/address_pb": [
    "AddressMatcher"
  ],
  "envoy/type/matcher/v3/filter_state_pb": [
    "FilterStateMatcher"
  ],
  "envoy/type/matcher/v3/metadata_pb": [
    "MetadataMatcher"
  ],
  "envoy/type/matcher/v3/node_pb": [
    "NodeMatcher"
  ],
  "envoy/type/matcher/v3/number_pb": [
    "DoubleMatcher"
  ],
  "envoy/type/matcher/v3/path_pb": [
    "PathMatcher"
  ],
  "envoy/type/matcher/v3/regex_pb": [
    "RegexMatcher",
    "RegexMatchAndSubstitute"
  ],
  "envoy/type/matcher/v3/string_pb": [
    "StringMatcher",
    "ListStringMatcher"
  ],
  "envoy/type/matcher/v3/struct_pb": [
    "StructMatcher"
  ],
  "envoy/type/matcher/v3/value_pb": [
    "ValueMatcher",
    "ListMatcher",
    "OrMatcher"
  ],
  "envoy/type/metadata/v3/metadata_pb": [
    "MetadataKey",
    "MetadataKind"
  ],
  "envoy/type/tracing/v3/custom_tag_pb": [
    "CustomTag"
  ],
  "envoy/type/v3/hash_policy_pb": [
    "HashPolicy"
  ],
  "envoy/type/v3/http_status_pb": [
    "HttpStatus"
  ],
  "envoy/type/v3/percent_pb": [
    "Percent",
    "FractionalPercent"
  ],
  "envoy/type/v3/range_pb": [
    "Int64Range",
    "Int32Range",
    "DoubleRange"
  ],
  "envoy/type/v3/semantic_version_pb": [
    "SemanticVersion"
  ],
  "envoy/type/v3/token_bucket_pb": [
    "TokenBucket"
  ],
  "google/api/expr/v1alpha1/checked_pb": [
    "CheckedExpr",
    "Type",
    "Decl",
    "Reference"
  ],
  "google/api/expr/v1alpha1/syntax_pb": [
    "ParsedExpr",
    "Expr",
    "Constant",
    "SourceInfo",
    "SourcePosition"
  ],
  "google/rpc/status_pb": [
    "Status"
  ],
  "istio/networking/nds/v1/nds_pb": [
    "NameTable"
  ],
  "istio/v1/auth/ca_pb": [
    "IstioCertificateRequest",
    "IstioCertificateResponse"
  ],
  "opentelemetry/proto/collector/logs/v1/logs_service_pb": [
    "ExportLogsServiceRequest",
    "ExportLogsServiceResponse",
    "ExportLogsPartialSuccess"
  ],
  "opentelemetry/proto/collector/metrics/v1/metrics_service_pb": [
    "ExportMetricsServiceRequest",
    "ExportMetricsServiceResponse",
    "ExportMetricsPartialSuccess"
  ],
  "opentelemetry/proto/collector/trace/v1/trace_service_pb": [
    "ExportTraceServiceRequest",
    "ExportTraceServiceResponse",
    "ExportTracePartialSuccess"
  ],
  "opentelemetry/proto/common/v1/common_pb": [
    "AnyValue",
    "ArrayValue",
    "KeyValueList",
    "KeyValue",
    "InstrumentationScope",
    "EntityRef"
  ],
  "opentelemetry/proto/logs/v1/logs_pb": [
    "LogsData",
    "ResourceLogs",
    "ScopeLogs",
    "LogRecord"
  ],
  "opentelemetry/proto/metrics/v1/metrics_pb": [
    "MetricsData",
    "ResourceMetrics",
    "ScopeMetrics",
    "Metric",
    "Gauge",
    "Sum",
    "Histogram",
    "ExponentialHistogram",
    "Summary",
    "NumberDataPoint",
    "HistogramDataPoint",
    "ExponentialHistogramDataPoint",
    "SummaryDataPoint",
    "Exemplar"
  ],
  "opentelemetry/proto/resource/v1/resource_pb": [
    "Resource"
  ],
  "opentelemetry/proto/trace/v1/trace_pb": [
    "TracesData",
    "ResourceSpans",
    "ScopeSpans",
    "Span",
    "Status"
  ],
  "udpa/type/v1/typed_struct_pb": [
    "TypedStruct"
  ],
  "xds/core/v3/authority_pb": [
    "Authority"
  ],
  "xds/core/v3/cidr_pb": [
    "CidrRange"
  ],
  "xds/core/v3/collection_entry_pb": [
    "CollectionEntry"
  ],
  "xds/core/v3/context_params_pb": [
    "ContextParams"
  ],
  "xds/core/v3/extension_pb": [
    "TypedExtensionConfig"
  ],
  "xds/core/v3/resource_locator_pb": [
    "ResourceLocator"
  ],
  "xds/type/matcher/v3/matcher_pb": [
    "Matcher"
  ],
  "xds/type/matcher/v3/regex_pb": [
    "RegexMatcher"
  ],
  "xds/type/matcher/v3/string_pb": [
    "StringMatcher",
    "ListStringMatcher"
  ],
  "xds/type/v3/cel_pb": [
    "CelExpression",
    "CelExtractString"
  ],
  "xds/type/v3/typed_struct_pb": [
    "TypedStruct"
  ]
};
