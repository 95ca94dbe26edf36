module sluice.dev/test/bench/load

go 1.26.0
