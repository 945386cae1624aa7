module yardstick

go 1.21
