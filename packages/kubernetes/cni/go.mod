module tulle/cni

go 1.24
