module tulle.example/captured-client

go 1.24
