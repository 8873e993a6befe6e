module tulle.example/dns-client

go 1.24
