module github.com/quorumlock/redlock/integration/cronlock

go 1.26.0

replace github.com/quorumlock/redlock => ../../

require github.com/quorumlock/redlock v0.0.0

require (
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)
